// Replaces the tokenizer of a checkpoint: rows are matched by what tokens write, and its files
// replace the old ones.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"
#include "surgery/edit/checkpoint_edit.hpp"
#include "surgery/rows/token_form.hpp"
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
  NewTokenizer(const NewTokenizer&) = delete;
  NewTokenizer& operator=(const NewTokenizer&) = delete;

  /// The change of `state` to this tokenizer. One row for each id, then rows without token up to a
  /// multiple of `multiple`: the row of the old token that writes the same (TokenForm: the start of
  /// a word or its continuation, the text, bytes), special tokens by their spelling; else of the
  /// old token with the same role (`[PAD]` for `<pad>`), else a new row. Opens the old tokenizer.
  /// Throws InputError for a lone file, for a checkpoint without tokenizer files that can be
  /// edited or opened, and unless `multiple` is 1 to 2^24.
  VocabularyChange plan(const VocabularyState& state, std::uint64_t multiple) const;

  /// The old rows whose mean is each new row of `context`: the pieces into which the old tokenizer
  /// splits what the token writes (TokenForms::pieces). Empty (all rows) if there is no text, or a
  /// piece is unknown. Opens the old tokenizer in the folder of the checkpoint; throws InputError
  /// if that fails.
  RowMeans pieces(const RowInitContext& context) const;

  /// Puts its files into the folder of `edit`, instead of the old vocabulary files; `before` are
  /// the old names. If it has no tokenizer_config.json, the old one stays, without its added
  /// tokens. Throws InputError if the old one names a token that the new vocabulary lacks, or
  /// belongs to another kind of tokenizer. Returns notes for people.
  std::vector<std::string> write(CheckpointEdit& edit, const TokenNames& before) const;

  /// The id that the member `name` of a configuration has with this tokenizer: "bos_token_id" that
  /// of its bos_token, else what the config.json in its folder says; nothing if neither knows it.
  std::optional<std::uint64_t> id_of_role(std::string_view name) const;

 private:
  std::string path_;
  bool is_folder_ = false;
  TokenNames names_;
  text::Tokenizer tokenizer_;
  TokenForms forms_;
  JsonValue config_;  ///< config.json of its folder; null if there is none
};

}  // namespace masque::surgery
