// Replaces the tokenizer of a checkpoint: rows are matched by the spelling of tokens, and its files
// replace the old ones.
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
  /// InputError if it is not one of these.
  explicit NewTokenizer(const std::string& path);

  /// The change of `state` to this tokenizer. One row for each id, then rows without token up to a
  /// multiple of `multiple`: the row of the old token with the same spelling, else of the old token
  /// with the same role (`[PAD]` for `<pad>`), else a new row. Throws InputError for a lone file,
  /// for a checkpoint without tokenizer files that can be edited, and unless `multiple` is 1 to
  /// 2^24.
  VocabularyChange plan(const VocabularyState& state, std::uint64_t multiple) const;

  /// The old rows whose mean is each new row of `context`: the pieces into which the old tokenizer
  /// splits the token's text (the text of "##ing" is "ing", that of "Ġthe" is " the"). Empty (all
  /// rows) if there is no text, or a piece is unknown. Opens the old tokenizer in the folder of the
  /// checkpoint; throws InputError if that fails.
  RowMeans pieces(const RowInitContext& context) const;

  /// Puts its files into the folder of `edit`, instead of the old vocabulary files; `before` are
  /// the old names. If it has no tokenizer_config.json, the old one stays, without its added
  /// tokens. Throws InputError if the old one names a token that the new vocabulary lacks, or
  /// belongs to another kind of tokenizer. Returns notes for people.
  std::vector<std::string> write(CheckpointEdit& edit, const TokenNames& before) const;

 private:
  std::string text_of(std::uint64_t id) const;

  std::string path_;
  bool is_folder_ = false;
  TokenNames names_;
  text::Tokenizer tokenizer_;
};

}  // namespace masque::surgery
