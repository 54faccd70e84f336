// The vocabulary of a Unigram model: a list, in which the place is the id.
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json_writer.hpp"
#include "surgery/vocabulary/json_elements.hpp"
#include "surgery/vocabulary/vocabulary_job.hpp"

namespace masque::surgery {

namespace {

/// A piece of score 0, like those of the special tokens, written like `like`.
std::string piece_text(const std::string& text, const JsonValue* like, std::string_view piece) {
  if (like == nullptr) {
    return json_text(
        [&](JsonWriter& json) { json.begin_array().value(piece).raw("0.0").end_array(); },
        JsonLayout::kSpaced);
  }
  TextSplice splice;
  splice.replace(like->items[0].begin, like->items[0].end, quote_json(piece));
  splice.replace(like->items[1].begin, like->items[1].end, "0.0");
  return splice.apply(text, like->begin, like->end);
}

}  // namespace

void change_pieces(VocabularyJob& job, const JsonText& file, const JsonValue& vocab,
                   TextSplice& splice) {
  ModelIds ids(job.moves);
  std::vector<std::string> wanted;
  wanted.reserve(vocab.items.size());
  const auto set = [&](std::uint64_t id, std::string text) {
    if (id >= wanted.size()) wanted.resize(id + 1);
    wanted[id] = std::move(text);
    ids.add(id);
  };
  for (std::uint64_t i = 0; i < vocab.items.size(); ++i) {
    const JsonValue& item = vocab.items[i];
    if (item.items.size() != 2 || !item.items[0].is(JsonKind::kString) || !item.items[1].number()) {
      throw InputError(file.path,
                       fmt::format("byte {}: expected a piece and its score", item.begin));
    }
    const auto now = job.moves.follow(i, item.items[0].text, file.path);
    if (!now) continue;
    TextSplice piece;
    if (now->text != item.items[0].text)
      piece.replace(item.items[0].begin, item.items[0].end, quote_json(now->text));
    set(now->id, piece.apply(file.text, item.begin, item.end));
  }
  const JsonValue* like = vocab.items.empty() ? nullptr : &vocab.items.back();
  for (const TokenMoves::Token& token : ids.missing(job.moves))
    set(token.id, piece_text(file.text, like, token.text));
  for (std::size_t id = 0; id < wanted.size(); ++id) {
    if (!wanted[id].empty()) continue;
    throw InputError(
        file.path,
        fmt::format(
            "id {} would have no token, but the vocabulary of a Unigram model cannot have gaps",
            id));
  }
  set_elements(file.text, vocab, wanted, splice);
}

}  // namespace masque::surgery
