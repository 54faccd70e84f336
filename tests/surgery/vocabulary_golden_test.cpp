// Vocabularies changed by hand of the golden script: the ids that transformers gives afterwards.
#include <filesystem>

#include <doctest/doctest.h>

#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "surgery/example.hpp"
#include "surgery/vocabulary/change_vocabulary.hpp"
#include "surgery/vocabulary/vocabulary_spelling.hpp"
#include "text/tokenizer.hpp"

namespace masque::surgery {
namespace {

using test::TempFolder;

const std::string kGoldens = std::string(MASQUE_TEST_DATA) + "/vocabulary";

VocabularyChange plan(const std::string& change, const std::vector<std::string>& arguments,
                      const VocabularyState& state) {
  TokenList list{arguments, TokenList::As::kTokens};
  if (change == "add") return plan_add(state, arguments, false, 1);
  if (change == "remove") return plan_remove(state, list);
  if (change == "rename") return plan_rename(state, {parse_renaming(state, arguments.at(0))});
  list.entries.erase(list.entries.begin(), list.entries.begin() + 2);  // --as tokens
  if (change == "keep") return plan_keep(state, list);
  REQUIRE(change == "permute");
  return plan_permute(state, list);
}

TEST_CASE("after every change the tokenizer gives the ids of transformers") {
  const std::string path = kGoldens + "/cases.json";
  const JsonValue cases = parse_json_file(InputFile::open(path).read_all(64 << 20), path);
  std::size_t lines = 0;
  for (const JsonValue& item : cases.items) {
    const std::string name = item.find("folder")->text;
    const std::string change = item.find("change")->text;
    CAPTURE(name);
    CAPTURE(change);
    const TempFolder folder;
    ExampleBert bert;
    const auto config = store::ModelConfig::find(kGoldens + "/" + name);
    bert.rows = config->size("vocab_size").value();
    bert.head = false;
    bert.config.clear();
    bert.vocabulary.clear();
    bert.write(folder);
    for (const auto& file : std::filesystem::directory_iterator(kGoldens + "/" + name)) {
      if (file.path().filename() != "config.json")
        std::filesystem::copy(file.path(), folder / ("in/" + file.path().filename().string()));
    }
    std::vector<std::string> arguments;
    for (const JsonValue& argument : item.find("arguments")->items)
      arguments.push_back(argument.text);
    change_vocabulary(folder / "in", folder / "out",
                      [&](const VocabularyState& state) { return plan(change, arguments, state); },
                      {});
    const text::Tokenizer tokenizer = text::Tokenizer::open(folder / "out");
    CHECK(tokenizer.warnings().empty());
    for (const JsonValue& line : item.find("lines")->items) {
      const std::string text = line.find("text")->text;
      CAPTURE(text);
      std::vector<TokenId> ids;
      for (const JsonValue& id : line.find("ids")->items)
        ids.push_back(static_cast<TokenId>(id.integer().value()));
      text::EncodeOptions options;
      options.special = true;
      CHECK(tokenizer.encode(text, options).ids == ids);
      ++lines;
    }
  }
  CHECK(lines > 100);
}

}  // namespace
}  // namespace masque::surgery
