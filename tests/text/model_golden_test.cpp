// Models against Hugging Face's tokenizers and libsentencepiece: scripts/goldens/text_models.py.
// MASQUE_TEXT_GOLDENS names another folder that the script wrote.
#include <algorithm>
#include <cstdlib>
#include <string>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "text/open/spiece_model.hpp"

namespace masque::text {
namespace {

std::string folder() {
  const char* other = std::getenv("MASQUE_TEXT_GOLDENS");
  return other != nullptr ? other : MASQUE_TEST_DATA "/text";
}

std::string read(const std::string& path) { return InputFile::open(path).read_all(1U << 28); }

std::string text_of(const std::vector<Piece>& pieces) {
  std::string out;
  for (const Piece& piece : pieces) {
    out += "[" + std::to_string(piece.id) + "," + std::to_string(piece.begin) + "," +
           std::to_string(piece.end) + "]";
  }
  return out;
}

/// Affixes that fell back to bytes have spans beyond the word there; ours end with it.
std::vector<Piece> pieces_of(const JsonValue& json, const std::string& word) {
  std::vector<Piece> out;
  for (const JsonValue& token : json.items) {
    const auto number = [&](std::size_t i) { return token.items[i].integer().value(); };
    out.push_back({static_cast<TokenId>(number(0)),
                   static_cast<std::uint32_t>(std::min<std::uint64_t>(number(1), word.size() - 1)),
                   static_cast<std::uint32_t>(std::min<std::uint64_t>(number(2), word.size()))});
  }
  return out;
}

TEST_CASE("models of tokenizer.json give the tokens of Hugging Face's tokenizers") {
  const std::string path = folder() + "/models.json";
  const JsonValue cases = parse_json_file(read(path), path);
  REQUIRE(cases.items.size() > 20);
  std::size_t number = 0;
  for (const JsonValue& item : cases.items) {
    CAPTURE(number);
    const auto model = make_model(*item.find("model"), path);
    for (const JsonValue& pair : item.find("words")->items) {
      const std::string& word = pair.items[0].text;
      CAPTURE(word);
      std::vector<Piece> pieces;
      if (pair.items[1].is(JsonKind::kString)) {
        CHECK_THROWS_AS(model->tokenize(word, pieces), InputError);
      } else {
        model->tokenize(word, pieces);
        CHECK(text_of(pieces) == text_of(pieces_of(pair.items[1], word)));
      }
    }
    ++number;
  }
}

TEST_CASE("SentencePiece models give the ids of libsentencepiece") {
  const std::string path = folder() + "/spiece/words.json";
  const JsonValue files = parse_json_file(read(path), path);
  REQUIRE(files.items.size() >= 16);
  for (const JsonValue& item : files.items) {
    const std::string& name = item.find("file")->text;
    CAPTURE(name);
    const auto model = make_spiece(read_spiece_model(read(folder() + "/spiece/" + name), name),
                                   PieceRules::kSentencePiece, name);
    for (const JsonValue& pair : item.find("words")->items) {
      const std::string& word = pair.items[0].text;
      CAPTURE(word);
      std::vector<Piece> pieces;
      model->tokenize(word, pieces);
      std::string got;
      std::string wanted;
      for (const Piece& piece : pieces) got += std::to_string(piece.id) + " ";
      for (const JsonValue& id : pair.items[1].items) wanted += id.text + " ";
      CHECK(got == wanted);
    }
  }
}

}  // namespace
}  // namespace masque::text
