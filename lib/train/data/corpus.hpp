// Text as a trainer reads it: all ids in memory, one sequence after the other.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "records/corruption.hpp"
#include "text/tokenizer.hpp"

namespace masque::train {

/// A sequence of a corpus. Spans end with the corpus.
struct CorpusItem {
  std::uint64_t number = 0;  ///< in the corpus, from 0; keys the random numbers
  std::span<const TokenId> ids = {};
  std::span<const std::uint8_t> segments = {};   ///< one an id: 0 source, 1 target; empty: 0
  std::span<const std::int32_t> positions = {};  ///< one an id; empty: 0, 1, …
  /// What is predicted, one an id: records::kNoLabel for nothing; empty: the objective decides.
  std::span<const std::int32_t> labels = {};
  std::span<const double> weights = {};  ///< of the loss, one an id; empty: 1
  std::string_view mask = {};            ///< an expression of the mask language; empty: none
  Index line = 0;                        ///< of the file that it stands in, from 1; 0: of none
  /// When training takes it, counted from 0 over all epochs; none: it is evaluated.
  std::optional<std::uint64_t> place = {};
};

/// What the labels of a corpus are.
enum class LabelKind {
  kNone,
  kTokens,    ///< ids
  kReplaced,  ///< 1: the token is not the original one; 0: it is
  kHidden,    ///< the id of each token that is hidden, as masked autoencoding hides it
};

/// Sequences of ids. Immutable once read; thread-safe.
class Corpus {
 public:
  /// Appends a sequence; `segments` is empty or has one an id. For tests and readers.
  void add(std::span<const TokenId> ids, std::span<const std::uint8_t> segments = {});
  /// The same with everything but the number. All sequences have labels or none has.
  void add(const CorpusItem& item);
  /// What it was read from, for messages.
  void set_source(std::string name) { source_ = std::move(name); }
  /// What labels are, of all sequences.
  void set_labels(LabelKind kind) { label_kind_ = kind; }
  /// The token in front of each line, where the tokenizer's template has none.
  void set_begin_token(std::optional<TokenId> token) { begin_token_ = token; }
  /// How many lines of the file are no sequence.
  void set_left_out(Index lines) { left_out_ = lines; }

  /// Number of sequences.
  Index size() const { return static_cast<Index>(begins_.size()) - 1; }
  Index tokens() const { return begins_.back(); }
  Index length(Index item) const;
  /// Tokens of the longest sequence; 0 without any.
  Index longest() const;
  /// Whether some sequence has a second segment.
  bool pairs() const { return !segments_.empty(); }
  LabelKind labels() const { return label_kind_; }
  const std::optional<TokenId>& begin_token() const { return begin_token_; }
  /// Whether some sequence has a mask.
  bool has_masks() const { return !masks_.empty(); }
  /// Whether some sequence has positions other than 0, 1, …
  bool has_positions() const { return !positions_.empty(); }
  /// Pairs that CorpusOptions::corrections left out.
  Index left_out() const { return left_out_; }
  /// One more than the largest position; 0 without any sequence.
  Index position_end() const;
  CorpusItem item(Index number) const;
  /// The file, as messages name it: "the corpus" of one that was made in memory.
  const std::string& source() const { return source_; }
  /// XXH3 of ids, what else sequences have and where sequences begin: another digest is another
  /// corpus.
  std::string digest() const;

 private:
  std::vector<TokenId> ids_;
  std::vector<Index> begins_{0};
  // One an id, or empty as in CorpusItem.
  std::vector<std::uint8_t> segments_;
  std::vector<std::int32_t> positions_;
  std::vector<std::int32_t> labels_;
  std::vector<double> weights_;
  std::vector<std::string> masks_;  ///< one a sequence, or none
  std::vector<Index> lines_;        ///< one a sequence, or none
  std::string source_ = "the corpus";
  LabelKind label_kind_ = LabelKind::kNone;
  Index left_out_ = 0;
  std::optional<TokenId> begin_token_;
};

enum class CorpusFormat {
  kLines,    ///< each line of a text is a sequence
  kBlocks,   ///< the whole text in sequences of exactly `length` tokens
  kRecords,  ///< JSON lines: lib/records/README.md
  kPairs,    ///< source TAB target
};

struct CorpusOptions {
  CorpusFormat format = CorpusFormat::kLines;
  /// Most tokens of a sequence, those of the template included; longer lines lose their end.
  Index length = 128;
  /// Put before and after a line where the template puts nothing: what a causal model reads
  /// first, and what ends a text. Blocks and records have neither.
  std::optional<TokenId> begin = {}, end = {};
  /// Records say what is predicted: they must have labels. Otherwise they must have none.
  bool labels = false;
  /// Tokens that records have dropped come back to their places, with labels that say what they
  /// are: what masked autoencoding predicts.
  bool dropped = false;
  /// Pairs are a text with errors and what it should be, token for token.
  bool corrections = false;
  int threads = 0;
};

/// Reads a file, a pipe or, for "-", standard input. The same corpus for any number of threads.
///
/// Text that is not UTF-8 is repaired with U+FFFD; a carriage return before the line feed is no
/// part of a line; lines without a token are passed over, as are pairs of which one side has none.
///
/// Lines   template, tokens, template; cut at the end to `length`.
/// Blocks  the lines joined by the tokenizer's eos token, else its sep token, else nothing; cut in
///         pieces, each between the tokens of the template; the rest is dropped.
/// Pairs   the template of two texts, the longer one cut first; the target begins after the tokens
///         that the template puts between both. Without a template: source, sep or else eos token,
///         target, the same token. With `corrections` a sequence is the source alone, and its
///         labels are the target's tokens, none where that is unknown (roles().unk) or the template
///         stands; pairs of different numbers of tokens are left out, and counted.
/// Records ids, `pos` from 0 to less than `length`, `seg` and `mask` as they are; with `labels`
/// also
///         those and `weights`. A record of `original` and no labels (droptoken bart) becomes a
///         source, its ids, and a target, the original: the target's tokens are predicted under the
///         mask unilm. Labels next to `original` (droptoken electra) are 1 for replaced tokens.
///         With `dropped` all records have such a list or none has; the tokens come back between
///         the positions of the others.
///
/// Memory: 8 bytes a sequence, 4 a token, 1 more with segments, 4 with positions and labels each, 8
/// with weights, besides the mapped file. Throws InputError if there is no sequence (for blocks
/// with the number of tokens that were found and are needed), a line or record is wrong (by
/// number), an id is beyond the vocabulary; UsageError if `length` leaves no room besides the
/// template, or pairs need a separator that the tokenizer has not.
Corpus read_corpus(const std::string& path, const text::Tokenizer& tokenizer,
                   const CorpusOptions& options);

/// What corruptions must know of a tokenizer: size, mask token, special tokens, begins of words.
records::TokenTable token_table(const text::Tokenizer& tokenizer);

/// Throws UsageError naming the length and `model` if a sequence is longer than `most` positions,
/// InputError if a given position is beyond them; 0: there is no limit.
void check_length(const Corpus& corpus, Index most, std::string_view model);

/// The same of a corpus that is only evaluated: InputError that names its file and the line.
void check_evaluated_length(const Corpus& corpus, Index most, std::string_view model);

/// XXH3 of all tokens in the order of their ids: whether a vocabulary has changed.
std::string vocabulary_digest(const text::Tokenizer& tokenizer);

}  // namespace masque::train
