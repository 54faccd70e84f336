// Another tokenizer for a checkpoint: rows found by the spelling of tokens, its files instead of
// the old ones.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "surgery/edit/checkpoint_edit.hpp"
#include "surgery/rows/token_names.hpp"
#include "surgery/vocabulary/change_vocabulary.hpp"
#include "text/tokenizer.hpp"

namespace masque::surgery {

/// A tokenizer that a checkpoint is to have. Immutable.
class NewTokenizer {
 public:
  /// `path` is a folder with tokenizer files, or a vocab.txt or tokenizer.json by any name. Throws
  /// InputError for what is none.
  explicit NewTokenizer(const std::string& path);

  /// One row for each id, then rows without token up to a multiple: of the old token that is
  /// spelled alike, else of the one with the same role ([PAD] for <pad>), else a new one.
  VocabularyChange plan(const VocabularyState& state, std::uint64_t multiple) const;

  /// Of which old rows a new one is the mean: of the pieces that the old tokenizer makes of the
  /// token's text (that of "##ing" is "ing", that of "Ġthe" is " the"); of none (all rows) where
  /// there is no text, or a piece is unknown. Reads the old tokenizer.
  RowMeans pieces(const RowInitContext& context) const;

  /// Its files into the folder, instead of those with a vocabulary. A tokenizer_config.json that it
  /// lacks stays without the added tokens. Throws InputError if that names a token which the new
  /// vocabulary lacks, or if it is that of another kind of tokenizer. Returns notes.
  std::vector<std::string> write(CheckpointEdit& edit, const TokenNames& before) const;

 private:
  std::string text_of(std::uint64_t id) const;

  std::string path_;
  bool is_folder_ = false;
  TokenNames names_;
  text::Tokenizer tokenizer_;
};

}  // namespace masque::surgery
