// Text as a trainer reads it: one sequence of ids after the other.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/string/utf8.hpp"
#include "model/design.hpp"
#include "records/corruption.hpp"
#include "records/record.hpp"
#include "records/token_source.hpp"
#include "text/tokenizer.hpp"
#include "train/data/cut_sequences.hpp"

namespace masque::train {

/// A sequence of a corpus. Spans end with the corpus, `ids` with the last copy of the item if
/// earlier.
struct CorpusItem {
  std::uint64_t number = 0;  ///< in the corpus, from 0; keys the random numbers
  /// Ids of all tokens, those of a template included.
  std::span<const TokenId> ids = {};
  std::span<const std::uint8_t> segments = {};   ///< one an id: 0 source, 1 target; empty: 0
  std::span<const std::int32_t> positions = {};  ///< one an id; empty: 0, 1, …
  /// What is predicted, one an id: records::kNoLabel for nothing; empty: the objective decides.
  std::span<const std::int32_t> labels = {};
  std::span<const double> weights = {};  ///< weights of the loss, one an id; empty: 1
  std::string_view mask = {};            ///< an expression of the mask language; empty: none
  Index line = 0;                        ///< line of the file that it stands in, from 1; 0: none
  /// When training takes it, counted from 0 over all epochs; none: it is evaluated.
  std::optional<std::uint64_t> place = {};
  std::shared_ptr<const std::vector<TokenId>> kept = {};  ///< what `ids` is a view of, or nullptr
};

/// What the labels of a corpus are.
enum class LabelKind {
  kNone,      ///< there are none
  kTokens,    ///< ids
  kReplaced,  ///< 1: the token is not the original one; 0: it is
  kHidden,    ///< the id of each token that is hidden, as masked autoencoding hides it
};

/// Sequences of ids: either listed, all in memory, or cut from tokens that may be in a file.
/// Immutable once read; thread-safe; cheap to copy if they are cut.
class Corpus {
 public:
  /// No sequences.
  Corpus() = default;
  /// The sequences of `cut`; `lines` has the line of each, or nothing.
  explicit Corpus(CutSequences cut, std::vector<Index> lines = {});
  /// Appends all sequences of `other`, without their lines. Both have no listed sequences.
  void append(const Corpus& other);
  /// Appends a sequence of `ids`; `segments` is empty or has one an id. Views of items taken before
  /// are no longer valid. For tests and readers.
  void add(std::span<const TokenId> ids, std::span<const std::uint8_t> segments = {});
  /// The same with everything that `item` has but its number and place. Where only some sequences
  /// have a list, the others get its default: segments of 0, positions 0, 1, …, no labels, weights
  /// of 1.
  void add(const CorpusItem& item);
  /// Sets the `name` of what it was read from, for messages.
  void set_source(std::string name) { source_ = std::move(name); }
  /// Sets to `kind` what the labels of all sequences are.
  void set_labels(LabelKind kind) { label_kind_ = kind; }
  /// Sets the `token` in front of each line, where the tokenizer's template has none.
  void set_begin_token(std::optional<TokenId> token) { begin_token_ = token; }
  /// Sources and targets (segments 0 and 1) are read by an encoder and a decoder.
  void set_parts_apart() { parts_apart_ = true; }
  /// Adds `lines`, what was not UTF-8 in the text, to repaired().
  void add_repaired(const RepairedLines& lines) { repaired_.add(lines); }
  /// Adds `lines`, the lone surrogates of JSON, to surrogates().
  void add_surrogates(const RepairedLines& lines) { surrogates_.add(lines); }
  /// Adds `cut`, of sequences that are listed, to cut_text().
  void add_cut(const CutText& cut) { listed_cut_.add(cut); }
  /// Sets left_out() to `lines`.
  void set_left_out(Index lines) { left_out_ = lines; }

  /// Number of sequences.
  Index size() const { return cut_.empty() ? listed() : cut_end_.back(); }
  /// Number of tokens of all sequences together.
  Index tokens() const;
  /// Number of tokens of the sequence number `item`, from 0 to less than size().
  Index length(Index item) const;
  /// Tokens of the longest sequence; 0 without any. O(listed sequences).
  Index longest() const;
  /// Most tokens that a model reads at once: as longest(); with set_parts_apart() of a source or of
  /// a target without its last token, which is only predicted. O(listed tokens).
  Index longest_read() const;
  /// The same of `item`.
  Index longest_read(const CorpusItem& item) const;
  /// The first sequence of each length, by number. O(listed sequences).
  std::vector<Index> first_of_lengths() const;
  /// Whether sequences are read from files when they are asked for.
  bool in_files() const;
  /// Whether some sequence has a second segment.
  bool pairs() const { return !segments_.empty(); }
  /// What the labels are, as set_labels() was told.
  LabelKind labels() const { return label_kind_; }
  /// The token in front of each line, as set_begin_token() was told.
  const std::optional<TokenId>& begin_token() const { return begin_token_; }
  /// Whether some sequence has a mask.
  bool has_masks() const { return !masks_.empty(); }
  /// Whether some sequence has positions other than 0, 1, …
  bool has_positions() const { return !positions_.empty(); }
  /// Pairs that CorpusOptions::corrections left out.
  Index left_out() const { return left_out_; }
  /// What was not UTF-8 in the text, and became U+FFFD.
  const RepairedLines& repaired() const { return repaired_; }
  /// The lone surrogates of JSON, which became U+FFFD.
  const RepairedLines& surrogates() const { return surrogates_; }
  /// What of lines and pairs is beyond CorpusOptions::length.
  CutText cut_text() const;
  /// One more than the largest position; 0 without any sequence. O(listed tokens).
  Index position_end() const;
  /// The sequence `number`, from 0 to less than size(), without a place. Throws InputError for a
  /// file that is damaged there.
  CorpusItem item(Index number) const;
  /// The file, as messages name it: "the corpus" of one that was made in memory.
  const std::string& source() const { return source_; }
  /// XXH3 of ids, what else sequences have but their lines, and where sequences begin, in
  /// hexadecimal digits: another digest is another corpus. O(tokens).
  std::string digest() const;

 private:
  /// A sequence of cut_: which of them, and its number there.
  struct CutPlace {
    const CutSequences& cut;
    Index number;
  };
  CutPlace find_cut(Index number) const;
  Index listed() const { return static_cast<Index>(begins_.size()) - 1; }

  std::vector<CutSequences> cut_;
  std::vector<Index> cut_end_;  ///< number of sequences up to each of them
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
  bool parts_apart_ = false;
  RepairedLines repaired_, surrogates_;
  CutText listed_cut_;
  std::optional<TokenId> begin_token_;
};

/// How read_corpus() makes sequences of a file.
enum class CorpusFormat {
  kLines,    ///< each line of a text is a sequence
  kBlocks,   ///< the whole text in sequences of exactly `length` tokens
  kRecords,  ///< JSON lines: lib/records/README.md
  kPairs,    ///< source TAB target
};

/// How read_corpus() reads a file.
struct CorpusOptions {
  CorpusFormat format = CorpusFormat::kLines;  ///< what the file holds
  /// The lines are JSON objects, and this member of each is the text. For kLines and kBlocks alone.
  std::optional<std::string> field = {};
  /// JSON is a text, too: otherwise lines and blocks of what is JSON (JsonDetector) are refused.
  bool json_is_text = false;
  /// What the message about JSON says to do.
  std::string json_advice = "tok encode makes a token folder of it, which can be read here";
  /// Most tokens of a sequence, those of the template included.
  Index length = 128;
  /// Of longer lines and pairs: kFirst (they are cut), kSkip (they are left out, and counted) or
  /// kError.
  evaluate::LengthPolicy::Kind policy = evaluate::LengthPolicy::Kind::kFirst;
  /// Put before a line where the template puts nothing: what a causal model reads first. For kLines
  /// alone.
  std::optional<TokenId> begin = {};
  /// Put after a line where the template puts nothing: what ends a text. For kLines alone.
  std::optional<TokenId> end = {};
  /// Records say what is predicted: they must have labels. Otherwise they must have none.
  bool labels = false;
  /// Tokens that records have dropped come back to their places, with labels that say what they
  /// are: what masked autoencoding predicts.
  bool dropped = false;
  /// Of pairs, and of records with `original`, the source is what an encoder reads and the target
  /// what the decoder of this design predicts.
  std::optional<model::SourceDesign> source = {};
  /// Pairs are a text with errors and what it should be, token for token.
  bool corrections = false;
  /// How the model numbers positions of records.
  records::PositionRule positions = {};
  int threads = 0;  ///< that encode; 0: default_threads()
};

/// Reads the file or pipe `path`, or for "-" standard input, as `options` say, with the ids of
/// `tokenizer`. Text may be packed (TextSource). Lines and blocks may also be those of a token
/// folder or a file of ids (NAME.bin). The same corpus for any number of threads.
///
/// Text that is not UTF-8 is repaired with U+FFFD; a carriage return before the line feed is no
/// part of a line; lines without a token are passed over, as are pairs of which one side has none.
///
/// Lines   template, tokens, template; cut at the end to `length`, or as the policy says.
/// Blocks  the lines joined by the tokenizer's eos token, else its sep token, else nothing; cut in
///         pieces, each between the tokens of the template; the rest is dropped.
/// Pairs   the template of two texts, the longer one cut first; the target begins after the tokens
///         that the template puts between both. Without a template: source, sep or else eos token,
///         target, the same token. With `corrections` a sequence is the source alone, and its
///         labels are the target's tokens, none where that is unknown (roles().unk) or the template
///         stands; pairs of different numbers of tokens are left out, and counted.
///         With `source` both have the template of one text, each cut to `length`, and the token
///         that begins a target stands in front of it.
/// Records ids, positions as number_positions(), from 0 to less than `length`, `seg` and `mask` as
///         they are; with `labels`
///         those, too, and `weights`. A record of `original` and no labels (droptoken bart) becomes
///         a source, its ids, and a target, the original: the target's tokens are predicted under
///         the mask unilm; with `source` as in pairs. Labels next to `original` (droptoken electra)
///         are 1 for replaced tokens. With `dropped` all records have such a list or none has; the
///         tokens come back between the positions of the others.
///
/// Memory: 16 bytes a line, 4 a token, 1 more with segments, 4 with positions and labels each, 8
/// with weights; of token folders and files of ids next to nothing. Throws InputError if there is
/// no sequence (for blocks with the number of tokens that were found and are needed), a line or
/// record is wrong, or too long for the policy (by number), an id is beyond the vocabulary;
/// UsageError if `length` leaves no room besides the template, or pairs need a separator that the
/// tokenizer has not.
Corpus read_corpus(const std::string& path, const text::Tokenizer& tokenizer,
                   const CorpusOptions& options);

/// The ids of a text's lines, to be cut in several ways.
struct TextTokens {
  std::shared_ptr<const records::TokenSource> tokens;  ///< tokens of each line that has some
  std::string source;                                  ///< as messages name the file
  std::vector<Index> lines;                            ///< the line of each sequence, from 1
  RepairedLines repaired;                              ///< what was not UTF-8
  RepairedLines surrogates;                            ///< in JSON: lone surrogates
};
/// Reads the lines of `path` with `tokenizer` as read_corpus() does; of `options`, what is about
/// JSON and threads counts. Throws InputError for a text that cannot be read, and for a token
/// folder that was changed since it was written: it is read whole, and its ids are read again as
/// they are needed.
TextTokens read_text_tokens(const std::string& path, const text::Tokenizer& tokenizer,
                            const CorpusOptions& options);
/// Returns the corpus of `text`, whose ids are those of `tokenizer`, as lines or blocks: what
/// read_corpus() returns with these `options`. Throws as it does.
Corpus cut_corpus(const TextTokens& text, const text::Tokenizer& tokenizer,
                  const CorpusOptions& options);

/// Returns what corruptions must know of `tokenizer`: size, mask token, special tokens, begins of
/// words. O(vocabulary).
records::TokenTable token_table(const text::Tokenizer& tokenizer);

/// Throws UsageError naming the length and `model` if a sequence of `corpus` is longer than `most`
/// positions, InputError if a given position is beyond them. A `most` of 0: there is no limit.
/// Targets (CorpusOptions::source) may have one token more, which nothing reads.
void check_length(const Corpus& corpus, Index most, std::string_view model);

/// The same for a `corpus` that is only evaluated: throws InputError that names its file, the line,
/// `most` and `model`.
void check_evaluated_length(const Corpus& corpus, Index most, std::string_view model);

}  // namespace masque::train
