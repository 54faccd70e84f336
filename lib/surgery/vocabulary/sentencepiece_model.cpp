// SentencePiece's own files are not edited: their tokens must stay where they are.
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "surgery/vocabulary/vocabulary_job.hpp"
#include "text/open/spiece_model.hpp"

namespace masque::surgery {

namespace {

constexpr std::uint64_t kMostBytes = 1 << 30;
constexpr const char* kHint =
    "cannot be edited: save the tokenizer as tokenizer.json (save_pretrained of transformers does "
    "this) and move this file away";

}  // namespace

void check_editable(const store::Checkpoint& checkpoint, const TokenNames& names) {
  if (!names.empty()) return;
  for (const char* name : text::kSpieceFiles) {
    const std::string path = join(checkpoint.folder(), name);
    if (exists(path)) throw InputError(path, fmt::format("a SentencePiece model {}", kHint));
  }
}

void check_sentencepiece(const VocabularyJob& job) {
  const TokenNames& before = job.moves.before();
  for (const char* name : text::kSpieceFiles) {
    const std::string path = job.path(name);
    if (!exists(path)) continue;
    const std::string bytes = InputFile::open(path).read_all(kMostBytes);
    const auto pieces = text::read_spiece_model(bytes, path).pieces;
    for (std::uint64_t id = 0; before.empty() && id < pieces.size(); ++id) {
      if (job.moves.id_after(id) == id) continue;
      throw InputError(
          path,
          fmt::format("row {} would be removed or moved, but a SentencePiece model {}", id, kHint));
    }
    for (const text::ScoredPiece& piece : pieces) {
      const auto old = before.id(piece.text);
      if (!old || (job.moves.id_after(*old) == old && !job.moves.leaves(piece.text))) continue;
      throw InputError(path, fmt::format("token {} '{}' would change, but a SentencePiece model {}",
                                         *old, escape(piece.text), kHint));
    }
  }
}

}  // namespace masque::surgery
