// Records: what the tools for training data pass on to each other, one JSON object a line.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/string/name_table.hpp"
#include "base/types.hpp"
#include "mask/expression.hpp"

namespace masque::records {

/// Version of the fields below, written as "schema".
inline constexpr int kRecordSchema = 1;

/// The label of a position that carries no loss.
inline constexpr std::int32_t kNoLabel = -100;

/// A list that may be absent.
struct Numbers {
  bool present = false;              ///< even an empty list may be
  std::vector<std::int32_t> values;  ///< of no meaning if absent

  /// Absent; keeps the memory.
  void clear() {
    present = false;
    values.clear();
  }
  /// Present, with `n` values of unspecified content.
  std::vector<std::int32_t>& make(std::size_t n) {
    present = true;
    values.resize(n);
    return values;
  }
};

/// A token that was removed, and its position.
struct DroppedToken {
  std::int32_t pos = 0;  ///< its position in the record before
  TokenId id = 0;        ///< what it was
};

/// A field that passes through untouched: its key with quotes and its value, as they were written;
/// the key `text` always without escapes. Both are views of the line.
struct OtherField {
  std::string_view key;    ///< with its quotes
  std::string_view value;  ///< a JSON value
  /// The key without quotes and escapes.
  std::string name() const;
};

/// The kind of an error in a word.
enum class WordErrorKind {
  kTyping,     ///< a letter replaced by one next to it on the keyboard
  kInsertion,  ///< a letter twice, or one with a neighbour on the keyboard
  kDeletion,   ///< a character lost
  kSwap,       ///< two neighbouring characters in the other order
  kConfusion,  ///< another word of a confusion set
};
/// Number of kinds of errors.
inline constexpr std::size_t kWordErrorKinds = 5;
/// "typing", "insertion", … in the order above. The table is static.
NameTable<WordErrorKind> word_error_names();

/// Code points [begin, end) of a text.
struct CharSpan {
  std::uint64_t begin = 0;  ///< the first, from 0
  std::uint64_t end = 0;    ///< after the last
  bool operator==(const CharSpan&) const = default;
};

/// A word that got an error.
struct WordError {
  WordErrorKind kind = WordErrorKind::kTyping;  ///< what happened to it
  CharSpan span;                                ///< of the word in the text with errors
  CharSpan original_span;                       ///< and in the text before
};

/// A text with errors that were made in it.
struct NoisyText {
  std::string text;               ///< with the errors
  std::string original;           ///< without them
  std::vector<WordError> errors;  ///< from left to right
};

/// One sequence of tokens and its annotations. Reusable: clear() keeps the memory.
struct Record {
  std::uint64_t number = 0;  ///< in the stream, from 0; keys the random numbers
  std::uint64_t epoch = 0;   ///< which version of it
  /// When training takes it, counted from 0 over all epochs; none: it is not known.
  std::optional<std::uint64_t> place;

  std::vector<TokenId> ids;  ///< the tokens
  Numbers pos;               ///< positions; absent: 0, 1, 2 …
  /// `pos` was written as position_ids: those of RoBERTa's family begin at the padding id + 1.
  bool position_ids = false;
  Numbers seg;     ///< segments, for `unilm` and the like
  Numbers doc;     ///< packed documents, from 0
  Numbers words;   ///< the same number for the tokens of a word
  Numbers labels;  ///< what to predict; kNoLabel: nothing
  Numbers source;  ///< what the encoder of an encoder–decoder reads; `ids` are the decoder's
  bool has_weights = false;           ///< `weights` counts
  std::vector<double> weights;        ///< of the loss
  Numbers cu_seqlens;                 ///< where packed documents begin and end
  Numbers original;                   ///< ids before corruption, where labels do not hold them
  bool has_dropped = false;           ///< `dropped` counts
  std::vector<DroppedToken> dropped;  ///< tokens that were removed
  /// Tokens that attention_mask hid in front of others; `pos` counts them, as most models do.
  std::vector<DroppedToken> hidden;
  std::optional<std::string> mask;  ///< an expression of the mask language
  std::optional<NoisyText> noisy;   ///< of a record that is text, and has no ids
  std::vector<OtherField> other;    ///< views of the line that was parsed

  /// Removes everything but number and epoch; keeps the memory.
  void clear();
  /// Number of tokens.
  std::size_t size() const { return ids.size(); }
  /// The position of token number `i`, from 0.
  std::int32_t position(std::size_t i) const {
    return pos.present ? pos.values[i] : static_cast<std::int32_t>(i);
  }
  /// Leaves only the first `count` tokens, not more than there are, in every list that has one
  /// value a token.
  void keep_first(std::size_t count);
  /// Leaves only the tokens with keep[i] != 0, a flag for each token, in every list that has one
  /// value a token. `pos` is made first if it was absent, so that the rest keep their positions.
  void keep_tokens(const std::vector<std::uint8_t>& keep);
};

/// How a model numbers the positions of a sequence.
struct PositionRule {
  std::int32_t offset = 0;  ///< the number that transformers gives the first token; 0: counts all
  std::optional<TokenId> pad;  ///< with an offset: the token that is not counted
  bool skips_hidden =
      false;  ///< tokens that attention_mask hides are not counted, whatever they are
};

/// Makes `record.pos` what a model with `rule` reads: without the offset of position_ids, and
/// without padding that attention_mask hid, where the model does not count it. Padding that is
/// visible gets −1. Absent, if these are the positions without any.
void number_positions(Record& record, const PositionRule& rule);

/// What is wrong with the lengths of the lists of `record` that have a value for each token;
/// nothing if they fit.
std::optional<std::string> length_problem(const Record& record);

/// The mask in which packed documents do not read each other, for the offsets `ends` at which they
/// begin and end: "document(3,2)" for 0, 3, 5.
std::string document_mask(std::span<const std::int32_t> ends);

/// Whether `record` is a noised half and then the clean one, as block diffusion reads it (mask
/// block_diffusion(…)): its labels are those of the noised half.
bool has_clean_half(const Record& record);

/// Whether the labels of `record` are about the token of their own position. Those of language
/// models (mask causal, reverse or unilm(…)) are about a neighbour.
bool labels_are_own(const Record& record);

/// Appends `record` to `out` as one JSON object and a line feed: with `noisy` the texts and errors,
/// else the ids and what belongs to them; then the other fields.
void append_record(const Record& record, std::string& out);

// The mask of a record.

/// The expression `text` that a record has for `length` tokens. Throws InputError "mask: …" if it
/// is none, is for another length, or names a mask that reads a file: data open no files.
mask::MaskExpression parse_record_mask(std::string_view text, Index length);

/// The mask `text` of a record, bound to `length` tokens. Throws InputError as parse_record_mask,
/// and for values that do not fit the length.
mask::Mask bind_record_mask(std::string_view text, Index length);

}  // namespace masque::records
