// Token ids of texts, cut into the sequences that a model is trained on.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "evaluate/score/length_policy.hpp"
#include "records/token_source.hpp"

namespace masque::train {

/// What a sequence is made of.
struct SequenceShape {
  /// Whether sequences are blocks of exactly `room` tokens of the whole text, without the rest; or
  /// each line is one.
  bool blocks = false;
  std::vector<TokenId> before,       ///< special tokens in front of the text
      after;                         ///< special tokens after it
  Index room = 1;                    ///< most tokens of text, from 1
  std::optional<TokenId> separator;  ///< in blocks: between two lines
  /// What happens to lines with more than `room` tokens: kFirst (they lose their end), kSkip or
  /// kError.
  evaluate::LengthPolicy::Kind policy = evaluate::LengthPolicy::Kind::kFirst;

  /// Returns the sequence of a line's `ids`, at least one.
  std::vector<TokenId> sequence(std::span<const TokenId> ids) const;
  /// Number of special tokens around the text.
  Index around() const { return std::ssize(before) + std::ssize(after); }
};

/// How much of a text is beyond the maximum length of its sequences.
struct CutText {
  Index sequences = 0;  ///< that were cut or skipped
  Index left_out = 0;   ///< tokens of text that none of them has
  Index tokens = 0;     ///< number of tokens of the whole text, special ones not included
  Index skipped = 0;    ///< how many of `sequences` are left out whole

  /// Adds the counts of `other`.
  void add(const CutText& other) {
    sequences += other.sequences;
    left_out += other.left_out;
    tokens += other.tokens;
    skipped += other.skipped;
  }
};

/// Sequences of a source. Nothing is stored: each one is cut when it is asked for. Immutable,
/// thread-safe, cheap to copy.
class CutSequences {
 public:
  /// The lines of `source` in this `shape`. A source without boundaries can be cut into blocks
  /// only, and these have no separators. A line that is too long is skipped or cut: the caller
  /// refuses it (first_too_long()).
  CutSequences(std::shared_ptr<const records::TokenSource> source, SequenceShape shape);

  /// Number of sequences.
  Index size() const;
  /// Number of tokens of all sequences together, special ones included.
  Index tokens() const;
  /// What of lines is beyond the length; nothing of blocks, which leave out at most the end of the
  /// text.
  const CutText& cut_text() const { return cut_; }
  /// The first line of more tokens than there is room for; nothing of blocks.
  std::optional<Index> first_too_long() const { return first_too_long_; }
  /// The line of the source that sequence `number` of lines is, from 0.
  Index line(Index number) const;
  /// Tokens of the longest sequence; 0 without any.
  Index longest() const { return longest_; }
  /// TokenSource::in_files() of the source.
  bool in_files() const { return source_->in_files(); }
  /// Number of tokens of text, separators included: what blocks are cut from.
  Index text_tokens() const;
  /// Tokens of sequence `number`, from 0 to less than size(). O(1).
  Index length(Index number) const;
  /// The first sequence of each length, by number.
  const std::vector<Index>& first_of_lengths() const { return first_of_lengths_; }
  /// The ids of sequence `number`. O(log lines) and its length. Throws InputError for a file that
  /// is damaged there.
  std::vector<TokenId> ids(Index number) const;
  /// XXH3 of source and shape in hexadecimal digits: another digest, other sequences. Cost as
  /// TokenSource::digest().
  std::string digest() const;

 private:
  Index place_of(Index line) const;
  Index line_at(Index place) const;

  std::shared_ptr<const records::TokenSource> source_;
  SequenceShape shape_;
  Index tokens_ = 0;
  Index longest_ = 0;
  CutText cut_;
  std::optional<Index> first_too_long_;
  std::vector<Index> skipped_;  ///< lines, ascending
  std::vector<Index> first_of_lengths_;
};

}  // namespace masque::train
