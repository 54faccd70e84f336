// Every tokenizer class of transformers on tiny vocabularies: its ids, or a refusal:
// scripts/goldens/tokenizer_classes.py.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "base/string/split.hpp"
#include "base/thread/parallel.hpp"
#include "support/temp_folder.hpp"
#include "text/tokenizer.hpp"

namespace masque::text {
namespace {

const std::string kClasses = MASQUE_TEST_DATA "/text/classes/";

std::string read_class_file(const std::string& name) {
  return InputFile::open(kClasses + name).read_all(1U << 24);
}

/// Makes the folder of the case `json`, which is `line`.
void make_folder(const test::TempFolder& folder, const JsonValue& json, const std::string& line) {
  for (const JsonMember& file : json.find("files")->members)
    test::write_file(folder / file.name, read_class_file(file.value.text));
  const auto write = [&](const char* member, const char* name) {
    const JsonValue& value = *json.find(member);
    if (value.is(JsonKind::kObject))
      test::write_file(folder / name, line.substr(value.begin, value.end - value.begin));
  };
  write("settings", "tokenizer_config.json");
  write("config", "config.json");
  if (const JsonValue* beside = json.find("beside")) {
    for (const JsonMember& file : beside->members)
      test::write_file(folder / file.name,
                       line.substr(file.value.begin, file.value.end - file.value.begin));
  }
}

struct CaseCounts {
  std::size_t equal = 0;
  std::size_t refused = 0;
};

bool is_refused(const std::string& folder) {
  return input_error_message([&] { Tokenizer::open(folder); }).has_value();
}

/// Compares the ids of the texts of the case `json`, or that it is refused.
void check_case(const JsonValue& json, const std::string& line, const JsonValue& texts,
                CaseCounts& counts) {
  CAPTURE(json.find("name")->text);
  test::TempFolder folder;
  make_folder(folder, json, line);
  if (json.find("refused") != nullptr) {
    CHECK_THROWS_AS(Tokenizer::open(folder.path()), InputError);
    ++counts.refused;
  }
  const JsonValue* ids = json.find("ids");
  if (ids == nullptr) return;
  if (json.find("may_refuse") != nullptr && is_refused(folder.path())) {
    ++counts.refused;
    return;
  }
  const Tokenizer tokenizer = Tokenizer::open(folder.path());
  for (std::size_t i = 0; i < ids->items.size(); ++i) {
    if (!ids->items[i].is(JsonKind::kArray)) continue;
    std::vector<TokenId> expected;
    for (const JsonValue& id : ids->items[i].items)
      expected.push_back(static_cast<TokenId>(id.integer().value()));
    const std::string& text = texts.items[i].text;
    CAPTURE(text);
    CHECK(tokenizer.encode(text, {.special = true}).ids == expected);
    std::vector<TokenId> fast;
    tokenizer.id_encoder({.special = true}).encode(text, fast);
    CHECK(fast == expected);
  }
  ++counts.equal;
}

CaseCounts check_cases(const std::string& file) {
  const JsonValue texts = parse_json_file(read_class_file("texts.json"), "texts.json");
  CaseCounts counts;
  const std::string all = read_class_file(file);
  for (const std::string_view view : split_terminated(all, '\n')) {
    const std::string line(view);
    check_case(parse_json_file(line, file), line, texts, counts);
  }
  return counts;
}

TEST_CASE("each class of transformers gives its ids or is refused") {
  const CaseCounts counts = check_cases("cases.jsonl");
  CHECK(counts.equal > 250);
  CHECK(counts.refused > 100);
}

TEST_CASE("each setting next to a vocabulary changes what it changes in transformers") {
  CHECK(check_cases("settings.jsonl").equal > 300);
}

TEST_CASE("each setting next to a tokenizer.json changes what it changes, or is refused") {
  const CaseCounts counts = check_cases("json_settings.jsonl");
  CHECK(counts.equal > 90);
  CHECK(counts.refused < 40);
}

}  // namespace
}  // namespace masque::text
