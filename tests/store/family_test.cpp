// Rules that every table of a model family keeps.
#include "store/names/family.hpp"

#include <algorithm>
#include <set>

#include <doctest/doctest.h>

namespace masque::store {
namespace {

bool has_tensor(const FamilyNames& family, std::string_view name) {
  return std::any_of(family.tensors.begin(), family.tensors.end(),
                     [&](const TensorPattern& tensor) { return tensor.name == name; });
}

std::set<char> symbols_of(const FamilyNames& family) {
  std::set<char> symbols;
  for (const SizeField& size : family.sizes) symbols.insert(size.symbol);
  return symbols;
}

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }

TEST_CASE("the families are all there, sorted") {
  std::vector<std::string_view> names;
  for (const FamilyNames* family : family_names()) names.push_back(family->name);
  const std::vector<std::string_view> expected = {"albert", "bert",    "distilbert", "electra",
                                                  "gpt2",   "roberta", "roformer",   "xlnet"};
  CHECK(std::is_sorted(names.begin(), names.end()));
  for (const std::string_view name : expected) {
    CAPTURE(name);
    CHECK(std::find(names.begin(), names.end(), name) != names.end());
  }
}

TEST_CASE("names, model types and classes belong to one family each") {
  std::set<std::string_view> names;
  std::set<std::string_view> classes;
  for (const FamilyNames* family : family_names()) {
    CAPTURE(family->name);
    CHECK(find_family_names(family->name) == family);
    REQUIRE_FALSE(family->model_types.empty());
    REQUIRE_FALSE(family->lm_classes.empty());
    for (const std::string_view type : family->model_types) {
      CAPTURE(type);
      CHECK(names.insert(type).second);
      CHECK(find_family_names(type) == family);
    }
    for (const std::string_view name : family->lm_classes) CHECK(classes.insert(name).second);
  }
  CHECK(find_family_names("no-such-model") == nullptr);
  CHECK(find_family_names("") == nullptr);
}

TEST_CASE("the tables of a family are among its tensors") {
  for (const FamilyNames* family : family_names()) {
    CAPTURE(family->name);
    CHECK(has_tensor(*family, family->input_table));
    for (const std::string_view table :
         {family->position_table, family->segment_table, family->output_bias}) {
      CAPTURE(table);
      CHECK((table.empty() || has_tensor(*family, table)));
    }
    CHECK_FALSE(family->decoder_weight.empty());
    for (const std::string_view evidence : family->head_evidence) {
      CAPTURE(evidence);
      CHECK(has_tensor(*family, evidence));
      CHECK_FALSE(evidence.starts_with('~'));  // the base model alone is none
    }
    for (const HeadCopy& copy : family->head_copies) {
      CAPTURE(copy.name);
      CHECK(has_tensor(*family, copy.source));
      CHECK_FALSE(has_tensor(*family, copy.name));
    }
  }
}

TEST_CASE("the tables have a row for each token, position or segment") {
  for (const FamilyNames* family : family_names()) {
    CAPTURE(family->name);
    for (const TensorPattern& tensor : family->tensors) {
      if (tensor.name == family->input_table) CHECK(tensor.shape.starts_with("V,"));
      if (tensor.name == family->position_table) CHECK(tensor.shape.starts_with("P,"));
      if (tensor.name == family->output_bias) CHECK(tensor.shape == "V");
    }
  }
}

TEST_CASE("no tensor is listed twice") {
  for (const FamilyNames* family : family_names()) {
    std::set<std::string_view> seen;
    for (const TensorPattern& tensor : family->tensors) {
      CAPTURE(tensor.name);
      // A tensor may have two lines for two cases.
      CHECK((seen.insert(tensor.name).second || !tensor.when.empty()));
    }
  }
}

TEST_CASE("every letter of a shape, a condition and a name is a size of the family") {
  for (const FamilyNames* family : family_names()) {
    CAPTURE(family->name);
    const std::set<char> symbols = symbols_of(*family);
    CHECK(symbols.size() == family->sizes.size());
    for (const TensorPattern& tensor : family->tensors) {
      CAPTURE(tensor.name);
      for (const char c : std::string(tensor.shape) + std::string(tensor.when)) {
        if (is_upper(c)) CHECK(symbols.count(c) == 1);
      }
      for (std::size_t at = tensor.name.find('{'); at != std::string_view::npos;
           at = tensor.name.find('{', at + 1)) {
        REQUIRE(at + 2 < tensor.name.size());
        CHECK(tensor.name[at + 2] == '}');
        CHECK(symbols.count(static_cast<char>(tensor.name[at + 1] - 'a' + 'A')) == 1);
      }
    }
    for (const SizeField& size : family->sizes) {
      CAPTURE(size.symbol);
      CHECK(is_upper(size.symbol));
      CHECK_FALSE(size.fallback.empty());
      for (const char c : size.fallback) {
        if (is_upper(c)) CHECK(symbols.count(c) == 1);
      }
    }
  }
}

TEST_CASE("the prefix of the base model replaces the tilde") {
  CHECK(with_prefix("~embeddings.weight", "bert.") == "bert.embeddings.weight");
  CHECK(with_prefix("~embeddings.weight", "") == "embeddings.weight");
  CHECK(with_prefix("cls.bias", "bert.") == "cls.bias");
  for (const FamilyNames* family : family_names()) {
    CAPTURE(family->name);
    CHECK(family->prefix.ends_with('.'));
    CHECK(family->input_table.starts_with('~'));
  }
}

TEST_CASE("a tensor has one name whatever prefix and age its file has") {
  CHECK(canonical_name("bert.a.LayerNorm.weight") == "a.LayerNorm.weight");
  CHECK(canonical_name("a.LayerNorm.gamma") == "a.LayerNorm.weight");
  CHECK(canonical_name("bert.a.LayerNorm.beta") == "a.LayerNorm.bias");
  CHECK(canonical_name("a.gamma") == "a.gamma");  // of another kind of layer
  CHECK(canonical_name("LayerNorm.gamma.x") == "LayerNorm.gamma.x");
  CHECK(canonical_name("cls.predictions.bias") == "cls.predictions.bias");
  CHECK(canonical_name("bert.bert.x") == "bert.x");  // one prefix is removed, not two
  for (const FamilyNames* family : family_names()) {
    const std::string with = with_prefix(family->input_table, family->prefix);
    CAPTURE(with);
    CHECK(canonical_name(with) == with_prefix(family->input_table, ""));
  }
}

}  // namespace
}  // namespace masque::store
