// Text as a trainer reads it: all ids in memory, one sequence after the other.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "records/corruption.hpp"
#include "text/tokenizer.hpp"

namespace masque::train {

/// A sequence of a corpus. Spans end with the corpus.
struct CorpusItem {
  std::uint64_t number = 0;  ///< in the corpus, from 0; keys the random numbers
  std::span<const TokenId> ids;
  std::span<const std::uint8_t> segments;  ///< one an id: 0 source, 1 target; empty: 0
};

/// Sequences of ids. Immutable once read; thread-safe.
class Corpus {
 public:
  /// Appends a sequence; `segments` is empty or has one an id. For tests and readers.
  void add(std::span<const TokenId> ids, std::span<const std::uint8_t> segments = {});

  /// Number of sequences.
  Index size() const { return static_cast<Index>(begins_.size()) - 1; }
  Index tokens() const { return begins_.back(); }
  Index length(Index item) const;
  /// Tokens of the longest sequence; 0 without any.
  Index longest() const;
  /// Whether some sequence has a second segment.
  bool pairs() const { return !segments_.empty(); }
  CorpusItem item(Index number) const;
  /// XXH3 of ids, segments and where sequences begin: another digest is another corpus.
  std::string digest() const;

 private:
  std::vector<TokenId> ids_;
  std::vector<Index> begins_{0};
  std::vector<std::uint8_t> segments_;  ///< one an id; empty: all 0
};

enum class CorpusFormat {
  kLines,    ///< each line of a text is a sequence
  kBlocks,   ///< the whole text in sequences of exactly `length` tokens
  kRecords,  ///< JSON lines with `ids` and perhaps `seg`
  kPairs,    ///< source TAB target
};

struct CorpusOptions {
  CorpusFormat format = CorpusFormat::kLines;
  /// Most tokens of a sequence, those of the template included; longer lines lose their end.
  Index length = 128;
  /// Put before and after a line where the template puts nothing: what a causal model reads
  /// first, and what ends a text. Blocks and records have neither.
  std::optional<TokenId> begin = {}, end = {};
  int threads = 0;
};

/// Reads a file, a pipe or, for "-", standard input. The same corpus for any number of threads.
///
/// Text that is not UTF-8 is repaired with U+FFFD; a carriage return before the line feed is no
/// part of a line; lines without a token are passed over, as are pairs of which one side has none.
///
/// Lines   template, tokens, template; cut at the end to `length`.
/// Blocks  the lines joined by the tokenizer's eos token, else its sep token, else nothing; cut
/// into
///         pieces, each between the tokens of the template; the rest is dropped.
/// Pairs   the template of two texts, the longer one cut first; the target begins after the tokens
///         that the template puts between both. Without a template: source, sep or else eos token,
///         target, the same token.
/// Records ids as they are. Fields that say more of them (labels, pos, mask, …) are refused.
///
/// Memory: 4 bytes a token, 5 with segments, besides the mapped file. Throws InputError if there is
/// no sequence (for blocks with the number of tokens that were found and are needed), a line or
/// record is wrong (by number), an id is beyond the vocabulary; UsageError if `length` leaves no
/// room besides the template, or pairs need a separator that the tokenizer has not.
Corpus read_corpus(const std::string& path, const text::Tokenizer& tokenizer,
                   const CorpusOptions& options);

/// What corruptions must know of a tokenizer: size, mask token, special tokens, begins of words.
records::TokenTable token_table(const text::Tokenizer& tokenizer);

/// Throws UsageError naming the length and `model` if a sequence is longer than `most` positions;
/// 0: there is no limit.
void check_length(const Corpus& corpus, Index most, std::string_view model);

/// XXH3 of all tokens in the order of their ids: whether a vocabulary has changed.
std::string vocabulary_digest(const text::Tokenizer& tokenizer);

}  // namespace masque::train
