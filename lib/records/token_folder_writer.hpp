// Writing a token folder, sequence by sequence, so that an interrupted run can go on.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file/file.hpp"
#include "records/token_folder.hpp"

namespace masque::records {

/// How far a token folder is written.
struct TokenProgress {
  Index sequences = 0;    ///< number of sequences
  Index tokens = 0;       ///< of all sequences together
  Index lines = 0;        ///< of the text
  std::string text = {};  ///< digest of these lines, as the caller computes it
};

/// What happens when the folder is there.
enum class TokenFolderStart {
  kNew,     ///< it must not be there, or be empty
  kResume,  ///< what an earlier run wrote stays, whether it was interrupted or not
};

/// A token folder being written. It is complete, and a token folder, once commit() has returned;
/// until then it goes on from the last save(). For one writer at a time, and one thread.
class TokenFolderWriter {
 public:
  /// Makes the folder `path` for ids below `vocab_size` of a tokenizer with the digest
  /// `tokenizer`, or goes on with it, as `start` says; a folder that is not there is begun. Throws
  /// InputError: the folder is there (kNew) or is none of a run with the same tokenizer (kResume),
  /// another process writes it. A run goes on only with the same
  /// `settings`, which are what else decides the ids.
  TokenFolderWriter(std::string path, Index vocab_size, std::string tokenizer,
                    TokenFolderStart start, std::string settings = {});

  /// What is written and saved: when it begins, what an interrupted run left.
  const TokenProgress& saved() const { return saved_; }
  /// Whether an earlier run completed the folder. Then nothing is written: what is added is
  /// compared with the folder, in commit().
  bool complete() const { return complete_.has_value(); }

  /// Appends a sequence of `ids`, at least one, all below the vocabulary's size. Throws InputError.
  void add(std::span<const TokenId> ids);
  /// Makes durable what was added, which are the first `lines` lines of a text with the digest
  /// `text`: a run that goes on begins after them. Throws InputError.
  void save(Index lines, std::string text);
  /// Completes the folder; the text had `lines` lines. Throws InputError, also if nothing was
  /// added, or if the folder was complete() and holds other ids.
  void commit(Index lines);

 private:
  [[noreturn]] void refuse_taken() const;
  void check_progress() const;
  void open_complete();
  void restore();
  void check_tokenizer(const std::string& path, Index vocab_size, std::string_view tokenizer) const;
  void count(std::span<const TokenId> ids);
  void flush();

  std::string path_;
  std::string settings_;
  TokenFolderInfo info_;
  TokenProgress saved_;
  std::optional<TokenFolderInfo> complete_;  ///< what an earlier run wrote
  Descriptor ids_, ends_;
  std::string ids_buffer_, ends_buffer_;
  TokenDigest digest_;
  LengthTally lengths_;
};

/// Writes the sequences of the token folders `folders`, one after the other, as the new folder
/// `output`: as if their texts had been one. Goes on with what a killed process left of the same
/// merge, from the last folder that it had finished. Constant memory. Throws InputError if one is
/// no token folder, is damaged (TokenFolder::find_damage) or was made with another tokenizer than
/// the first, `output` is there, or writing fails; and Interrupted. Then there is no new folder.
void merge_token_folders(const std::vector<std::string>& folders, const std::string& output);

}  // namespace masque::records
