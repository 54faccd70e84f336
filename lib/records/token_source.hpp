// Token ids of texts, one sequence after the other: in memory or in files.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/digest/hash.hpp"
#include "base/types.hpp"

namespace masque::records {

/// The sequences of one length.
struct LengthCount {
  Index length = 0;  ///< in tokens
  Index count = 0;   ///< number of sequences
  Index first = 0;   ///< number of the first one, from 0
  bool operator==(const LengthCount&) const = default;
};

/// Sequences of ids, as a text's lines are, without special tokens. Immutable, thread-safe.
class TokenSource {
 public:
  TokenSource() = default;
  TokenSource(const TokenSource&) = delete;
  TokenSource& operator=(const TokenSource&) = delete;
  virtual ~TokenSource() = default;

  /// Number of sequences; none is empty.
  virtual Index sequences() const = 0;
  /// Number of tokens of all sequences together.
  virtual Index tokens() const = 0;
  /// Whether tokens are read from files when they are asked for.
  virtual bool in_files() const { return true; }
  /// Whether it is known where sequences begin. If not, all tokens are one sequence.
  virtual bool has_boundaries() const { return true; }
  /// Number of tokens in front of `sequence`, from 0 to sequences(). Throws InputError for a file
  /// that is damaged there.
  virtual Index begin(Index sequence) const = 0;
  /// Number of tokens of `sequence`, from 0 to less than sequences(). Throws as begin().
  virtual Index length(Index sequence) const { return begin(sequence + 1) - begin(sequence); }
  /// Fills `out` with tokens from number `begin` on: begin + out.size() is at most tokens(). Throws
  /// InputError for a file that is damaged there.
  virtual void read(Index begin, std::span<TokenId> out) const = 0;
  /// How many sequences have which length, by ascending length.
  virtual std::vector<LengthCount> lengths() const = 0;
  /// XXH3 of ids and boundaries, as TokenDigest computes it: the same for the same sequences,
  /// wherever they are. At most O(tokens).
  virtual std::string digest() const = 0;
};

/// TokenSource::digest() of sequences that come one after the other. For one thread.
class TokenDigest {
 public:
  /// Adds a sequence of `ids`.
  void add(std::span<const TokenId> ids);
  /// The digest of all so far.
  std::string digest() const;

 private:
  std::unique_ptr<Hasher> ids_ = make_xxh3();
  std::unique_ptr<Hasher> ends_ = make_xxh3();
  std::uint64_t tokens_ = 0;
};

/// TokenSource::lengths() of sequences that come one after the other. For one thread.
class LengthTally {
 public:
  /// Adds the next sequence, of `length` tokens.
  void add(Index length);
  /// Returns the counts so far, by ascending length.
  std::vector<LengthCount> counts() const;

 private:
  std::map<Index, LengthCount> counts_;
  Index sequences_ = 0;
};

/// Sequences in memory: 4 bytes a token, 8 a sequence.
class TokenList final : public TokenSource {
 public:
  /// Appends a sequence of `ids`, at least one. For one thread, before the list is shared.
  void add(std::span<const TokenId> ids);

  bool in_files() const override { return false; }
  Index sequences() const override { return static_cast<Index>(begins_.size()) - 1; }
  Index tokens() const override { return begins_.back(); }
  Index begin(Index sequence) const override { return begins_[static_cast<std::size_t>(sequence)]; }
  void read(Index begin, std::span<TokenId> out) const override;
  std::vector<LengthCount> lengths() const override { return lengths_.counts(); }
  std::string digest() const override;

 private:
  std::vector<TokenId> ids_;
  std::vector<Index> begins_{0};
  LengthTally lengths_;
};

}  // namespace masque::records
