// Any bytes as a spiece.model: what is accepted can cut words, and its pieces cover them.
#include <string>

#include "base/error.hpp"
#include "fuzz/fuzz.hpp"
#include "text/open/spiece_model.hpp"

namespace masque::text {
namespace {

const char* wrong(std::string_view bytes) {
  SpieceModel spiece;
  try {
    spiece = read_spiece_model(bytes, "fuzz");
  } catch (const InputError&) {
    return nullptr;
  }
  if (spiece.type > SpieceModel::Type::kBpe) return nullptr;
  const std::string word = "\u2581the caf\u00E9 " + spiece.pieces.back().text + "\u4E2D";
  for (const PieceRules rules : {PieceRules::kHuggingFace, PieceRules::kSentencePiece}) {
    const auto model = make_spiece(spiece, rules, "fuzz");
    std::vector<Piece> pieces;
    model->tokenize(word, pieces);
    std::uint32_t at = 0;
    for (const Piece& piece : pieces) {
      if (piece.begin >= piece.end || piece.begin > at || piece.end < at) return "spans";
      if (piece.id < 0 || static_cast<std::size_t>(piece.id) >= model->size()) return "ids";
      at = piece.end;
    }
    if (at != word.size()) return "the end of the word is missing";
  }
  return nullptr;
}

}  // namespace
}  // namespace masque::text

MASQUE_FUZZ_TARGET(masque::text::wrong)
