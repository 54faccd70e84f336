// A vocabulary after surgery: which row each id had before, and which token it has now.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "surgery/checkpoint_edit.hpp"
#include "surgery/token_names.hpp"

namespace masque {

/// New ids, one behind the other.
struct VocabularyChange {
  static constexpr std::uint64_t kNew = ~std::uint64_t{0};

  std::vector<std::uint64_t> from;  ///< new id → id before; kNew: its row is computed
  /// New id → its token; empty: none (rows that pad the table). As long as `from`.
  std::vector<std::string> tokens;
};

/// Carries a change to the files of the tokenizer in the checkpoint's folder, whichever are there:
/// vocab.txt, tokenizer.json (the model's vocabulary, added_tokens, the ids in its post-processor),
/// vocab.json, added_tokens.json, tokenizer_config.json, special_tokens_map.json. New tokens go
/// where transformers would read them. Nothing happens for a lone file. Every byte that need not
/// change stays. Throws InputError, before anything is written, for what a tokenizer cannot follow:
/// a token that merges of a byte-pair model make or use is gone; a special token is gone; a token
/// twice; a model file that cannot be edited (a SentencePiece model).
/// Returns notes for people, one line each.
std::vector<std::string> change_vocabulary_files(CheckpointEdit& edit, const TokenNames& before,
                                                 const VocabularyChange& change);

}  // namespace masque
