// What changes to checkpoints know of the families: rules that every one keeps.
#include "model/family_names.hpp"

#include <algorithm>
#include <set>

#include <doctest/doctest.h>

namespace masque::model {
namespace {

bool has_tensor(const FamilyNames& family, std::string_view name) {
  return std::ranges::any_of(family.tensors, [&](std::string_view tensor) {
    if (!tensor.ends_with(".*")) return tensor == name;
    const std::string_view stem = tensor.substr(0, tensor.size() - 1);
    return name.starts_with(stem) &&
           (name.substr(stem.size()) == "weight" || name.substr(stem.size()) == "bias");
  });
}

TEST_CASE("the families are all there, sorted") {
  std::vector<std::string_view> names;
  for (const FamilyNames& family : family_names()) names.push_back(family.name);
  const std::vector<std::string_view> expected = {
      "albert",  "bart",       "bert",     "bloom", "deberta_v2", "distilbert",
      "electra", "esm",        "falcon",   "fnet",  "gau_alpha",  "gpt2",
      "gpt_neo", "gpt_neox",   "gptj",     "llada", "llama",      "longformer",
      "masque",  "modernbert", "mpnet",    "mpt",   "neobert",    "nomic_bert",
      "opt",     "roberta",    "roformer", "t5",    "xlnet"};
  CHECK(std::ranges::equal(names, expected));
  CHECK(std::is_sorted(names.begin(), names.end()));
}

TEST_CASE("names, model types and classes belong to one family each") {
  std::set<std::string_view> names;
  std::set<std::string_view> classes;
  for (const FamilyNames& family : family_names()) {
    CAPTURE(family.name);
    CHECK(find_family_names(family.name) == &family);
    REQUIRE_FALSE(family.model_types.empty());
    CHECK(family.lm_classes.empty() == (family.name == "masque"));  // no class of transformers
    for (const std::string& type : family.model_types) {
      CAPTURE(type);
      CHECK(names.insert(type).second);
      CHECK(find_family_names(type) == &family);
    }
    for (const std::string& name : family.lm_classes) CHECK(classes.insert(name).second);
  }
  CHECK(find_family_names("no-such-model") == nullptr);
  CHECK(find_family_names("") == nullptr);
}

TEST_CASE("the tables of a family are among its tensors") {
  for (const FamilyNames& family : family_names()) {
    CAPTURE(family.name);
    CHECK(has_tensor(family, family.input_table));
    for (const std::string_view table :
         {family.position_table, family.segment_table, family.output_bias}) {
      CAPTURE(table);
      CHECK((table.empty() || has_tensor(family, table)));
    }
    CHECK_FALSE(family.decoder_weight.empty());
    for (const std::string& evidence : family.head_evidence) {
      CAPTURE(evidence);
      CHECK(has_tensor(family, evidence));
      CHECK_FALSE(evidence.starts_with('~'));  // the base model alone is none
    }
    for (const HeadCopy& copy : family.head_copies) {
      CAPTURE(copy.name);
      CHECK(has_tensor(family, copy.source));
      CHECK_FALSE(has_tensor(family, copy.name));
    }
  }
}

TEST_CASE("no tensor is listed twice") {
  for (const FamilyNames& family : family_names()) {
    std::set<std::string_view> seen;
    for (const std::string& tensor : family.tensors) {
      CAPTURE(tensor);
      CHECK(seen.insert(tensor).second);
      CHECK(tensor.find('*') >= tensor.size() - 1);
    }
  }
}

TEST_CASE("a number in a name is one letter in braces") {
  for (const FamilyNames& family : family_names()) {
    CAPTURE(family.name);
    for (const std::string& tensor : family.tensors) {
      CAPTURE(tensor);
      for (std::size_t at = tensor.find('{'); at != std::string_view::npos;
           at = tensor.find('{', at + 1)) {
        REQUIRE(at + 2 < tensor.size());
        CHECK(tensor[at + 2] == '}');
        CHECK((tensor[at + 1] >= 'a' && tensor[at + 1] <= 'z'));
      }
    }
    CHECK_FALSE(family.vocab_fields.empty());
    CHECK(family.position_field.empty() == family.position_table.empty());
  }
}

TEST_CASE("the prefix of the base model replaces the tilde") {
  CHECK(with_prefix("~embeddings.weight", "bert.") == "bert.embeddings.weight");
  CHECK(with_prefix("~embeddings.weight", "") == "embeddings.weight");
  CHECK(with_prefix("cls.bias", "bert.") == "cls.bias");
  for (const FamilyNames& family : family_names()) {
    CAPTURE(family.name);
    CHECK((family.prefix.empty() || family.prefix.ends_with('.')));
    CHECK(family.input_table.starts_with('~') == !family.prefix.empty());
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
  for (const FamilyNames& family : family_names()) {
    const std::string with = with_prefix(family.input_table, family.prefix);
    CAPTURE(with);
    CHECK(canonical_name(with) == with_prefix(family.input_table, ""));
  }
}

}  // namespace
}  // namespace masque::model
