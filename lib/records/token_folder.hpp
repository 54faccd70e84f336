// Token ids in files: token folders, and the files of nanoGPT and llm.c.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file/file.hpp"
#include "base/input/line_shard.hpp"
#include "records/token_source.hpp"
#include "text/tokenizer.hpp"

namespace masque::records {

/// The files of a token folder, version 1. All numbers are little-endian.
inline constexpr const char* kTokenInfoName = "tokens.json";
inline constexpr const char* kTokenIdsName = "ids.bin";  ///< uint16 or uint32, one a token
inline constexpr const char* kTokenEndsName =
    "ends.bin";  ///< uint64: tokens up to a sequence's end
inline constexpr const char* kTokenLengthsName = "lengths.bin";  ///< uint64: length, count, first
/// How far a folder is that is not complete.
inline constexpr const char* kTokenProgressName = "progress.json";
/// The version of the layout.
inline constexpr std::uint64_t kTokenFolderVersion = 1;

/// What the tokens.json of a token folder says.
struct TokenFolderInfo {
  int id_bytes = 4;       ///< of an id in ids.bin: 2 or 4
  Index vocab_size = 0;   ///< ids are below it
  std::string tokenizer;  ///< text::tokenizer_digest() of what encoded the text
  Index sequences = 0;    ///< number of sequences
  Index tokens = 0;       ///< of all sequences together
  Index lines = 0;        ///< of the text, those without a token included
  std::string digest;     ///< TokenSource::digest()

  /// Its text.
  std::string json() const;
  /// Reads the tokens.json of `folder`. Throws InputError for what is none, or of another version.
  static TokenFolderInfo read(const std::string& folder);
  /// Throws InputError about `folder`, whose info this is, if `used` is not the tokenizer that made
  /// it.
  void check_tokenizer(const std::string& folder, const text::Tokenizer& used) const;
};

/// Whether `path` is a folder with a tokens.json. Throws as is_folder().
bool is_token_folder(const std::string& path);

/// Bytes that hold every id below `vocab_size`: 2 or 4.
int id_bytes_of(Index vocab_size);

/// An open token folder. Its files are read as they are needed, and never whole: a file that was
/// shortened, or ids that are none, are an InputError where they are met.
class TokenFolder final : public TokenSource {
 public:
  /// Opens the token folder `path`. Throws InputError if its files do not fit each other by their
  /// sizes, or the last sequence does not end with the last token.
  static std::shared_ptr<const TokenFolder> open(const std::string& path);

  /// What tokens.json says.
  const TokenFolderInfo& info() const { return info_; }
  Index sequences() const override { return info_.sequences; }
  Index tokens() const override { return info_.tokens; }
  Index begin(Index sequence) const override;
  Index length(Index sequence) const override;
  void read(Index begin, std::span<TokenId> out) const override;
  std::vector<LengthCount> lengths() const override { return lengths_; }
  /// What tokens.json says. O(1).
  std::string digest() const override { return info_.digest; }
  /// Reads everything: boundaries, ids, counts of lengths, digest. Returns the first thing that is
  /// wrong, in one line with the file; nothing if all is right. Before that it calls `visit` with
  /// the ids of each sequence that it reads. O(tokens), memory of the longest sequence. Throws
  /// InputError if a file cannot be read, Interrupted, and what `visit` throws.
  std::optional<std::string> find_damage(
      const std::function<void(std::span<const TokenId>)>& visit = {}) const;

 private:
  std::uint64_t end_of(Index sequence) const;
  void check_last_end() const;
  std::optional<std::string> find_wrong_length(Index sequence, Index length) const;
  TokenFolder(std::string path, TokenFolderInfo info);
  void read_lengths();

  std::string path_;
  TokenFolderInfo info_;
  InputFile ids_, ends_;
  std::vector<LengthCount> lengths_;
};

/// Whether `path` is taken for a file of ids: a regular file NAME.bin that is neither text nor a
/// checkpoint of PyTorch. Throws InputError if it cannot be read.
bool is_token_file(const std::string& path);

/// Opens the file `path` of ids: with llm.c's header, or as nanoGPT has them, of
/// id_bytes_of(`vocab_size`) bytes each. It has no boundaries, and its digest is that of its size
/// and of 1024 places. Throws InputError if it is no such file; where an id of `vocab_size` or more
/// is met, too.
std::shared_ptr<const TokenSource> open_token_file(const std::string& path, Index vocab_size);

// A token folder as lines of ids.

/// Makes room in `out` for the numbers of `count` ids where they are many: room that is not written
/// to takes no memory, and a text that grows is there twice for a moment.
void reserve_ids(std::string& out, std::size_t count);
/// Appends `ids` to `out` as numbers with `between` between them.
void append_ids(std::string& out, std::span<const TokenId> ids, char between);

/// The sequences of a token folder, or of a part of it, as bytes of lines: numbers between spaces.
/// For one thread.
class TokenLines {
 public:
  /// The sequences of `shard` of `folder`, which is cut into parts of equal numbers of sequences. A
  /// line has at most `max_line` bytes.
  TokenLines(std::shared_ptr<const TokenFolder> folder, const Shard& shard, std::uint64_t max_line);

  /// Number of the next sequence in the folder, from 0.
  Index sequence() const { return sequence_; }
  /// Fills up to `size` bytes of `out` with what comes next, and returns how many; 0 at the end
  /// only. Throws as TokenFolder::read(), and InputError for a line that must be longer.
  std::size_t read(char* out, std::size_t size);

 private:
  Index part(std::uint64_t index, const Shard& shard) const;

  std::shared_ptr<const TokenFolder> folder_;
  Index sequence_, end_;
  std::uint64_t max_line_;
  std::vector<TokenId> ids_;
  std::string text_;
  std::size_t used_ = 0;  ///< bytes of it that were read
};

}  // namespace masque::records
