// Folders without tokenizer.json against transformers' AutoTokenizer, and Google's and bert4keras'
// rules: scripts/goldens/text_conversions.py.
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "support/temp_folder.hpp"
#include "text/tokenizer.hpp"

namespace masque::text {
namespace {

const std::string kFolder = MASQUE_TEST_DATA "/text/conversions/";

std::vector<TokenId> ids_of(const JsonValue& json, std::string_view name) {
  std::vector<TokenId> out;
  for (const JsonValue& item : json.find(name)->items)
    out.push_back(static_cast<TokenId>(item.integer().value()));
  return out;
}

/// Pairs of numbers, one after the other.
std::vector<Span> spans(const JsonValue& json) {
  std::vector<Span> out;
  for (std::size_t i = 0; i + 1 < json.items.size(); i += 2) {
    out.push_back({static_cast<std::uint32_t>(json.items[i].integer().value()),
                   static_cast<std::uint32_t>(json.items[i + 1].integer().value())});
  }
  return out;
}

std::vector<TokenId> fast_ids(const Tokenizer& tokenizer, const std::string& text,
                              const EncodeOptions& options) {
  std::vector<TokenId> out;
  tokenizer.id_encoder(options).encode(text, out);
  return out;
}

void check_line(const Tokenizer& tokenizer, const JsonValue& json, EncodeOptions options) {
  const std::string& text = json.find("text")->text;
  const Encoding got = tokenizer.encode(text, options);
  CHECK(got.ids == ids_of(json, "ids"));
  if (const JsonValue* offsets = json.find("offsets")) CHECK(got.offsets == spans(*offsets));
  CHECK(fast_ids(tokenizer, text, options) == got.ids);
  options.special = true;
  CHECK(tokenizer.encode(text, options).ids == ids_of(json, "special"));
  CHECK(fast_ids(tokenizer, text, options) == ids_of(json, "special"));
}

/// Compares every line of NAME.jsonl.
void check_file(const std::string& name, const Tokenizer& tokenizer, bool special_in_text) {
  CAPTURE(name);
  const std::string path = kFolder + name + ".jsonl";
  const std::string all = InputFile::open(path).read_all(1U << 28);
  std::size_t count = 0;
  for (std::size_t begin = 0; begin < all.size(); ++count) {
    const std::size_t end = all.find('\n', begin);
    const std::string line = all.substr(begin, end - begin);
    begin = end + 1;
    CAPTURE(line);
    check_line(tokenizer, parse_json_file(line, path), {.special_in_text = special_in_text});
  }
  CHECK(count > 60);
}

TEST_CASE("folders without tokenizer.json give the ids and offsets of transformers") {
  for (const char* name :
       {"albert", "albert_accents", "xlnet", "t5", "t5_first", "deberta_v3", "deberta_v2",
        "roberta", "roberta_prefix", "deberta", "mpnet", "distilbert", "electra"})
    check_file(name, Tokenizer::open(kFolder + name), true);
}

TEST_CASE("vocab.txt by Google's and bert4keras' rules") {
  for (const auto& [name, flavor] :
       {std::pair{"google", Flavor::kGoogle}, std::pair{"bert4keras", Flavor::kBert4Keras}}) {
    check_file(name, Tokenizer::open(kFolder + "electra", {.flavor = flavor}), false);
    check_file(std::string(name) + "_cased",
               Tokenizer::open(kFolder + "distilbert", {.flavor = flavor}), false);
  }
}

TEST_CASE("tokens that a folder adds") {
  test::TempFolder folder;
  test::write_file(folder / "vocab.txt", "[UNK]\n[MASK]\na\n");
  test::write_file(folder / "added_tokens.json", R"({"<b>":4,"<a>":3})");
  test::write_file(folder / "special_tokens_map.json", R"({"pad_token":"<p>"})");
  const Tokenizer named = Tokenizer::open(folder.path());
  CHECK(named.warnings().empty());
  CHECK(named.find("<a>") == 3);
  CHECK(named.find("<b>") == 4);
  CHECK(named.roles().pad == 5);
  CHECK(named.encode("a<b><p> a", {}).ids == std::vector<TokenId>{2, 4, 5, 2});
  const auto write = [&](const std::string& entries) {
    test::write_file(folder / "tokenizer_config.json",
                     R"({"added_tokens_decoder":{)" + entries + "}}");
  };
  write(R"("1":{"content":"[MASK]","lstrip":true,"special":true},"9":{"content":"<c>"})");
  const Tokenizer decoded = Tokenizer::open(folder.path());
  CHECK(decoded.warnings().size() == 1);  // <c> has 3, not 9
  CHECK(decoded.encode("a  [MASK]<c><b>", {.special_in_text = true}).offsets[1].begin == 1);
  CHECK_FALSE(decoded.find("<a>").has_value());
  write(R"("x":{"content":"<c>"})");
  CHECK_THROWS_AS(Tokenizer::open(folder.path()), InputError);
  write(R"("4":{})");
  CHECK_THROWS_AS(Tokenizer::open(folder.path()), InputError);
}

TEST_CASE("bert4keras numbers a vocabulary with duplicates otherwise: refused") {
  test::TempFolder folder;
  test::write_file(folder / "vocab.txt", "[UNK]\na\na\nb\n");
  CHECK_NOTHROW(Tokenizer::open(folder.path(), {.flavor = Flavor::kGoogle}));
  CHECK_THROWS_AS(Tokenizer::open(folder.path(), {.flavor = Flavor::kBert4Keras}), InputError);
}

}  // namespace
}  // namespace masque::text
