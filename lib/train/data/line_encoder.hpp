// Lines of a text to token ids.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/string/utf8.hpp"
#include "text/tokenizer.hpp"
#include "train/data/corpus.hpp"
#include "train/data/cut_sequences.hpp"

namespace masque::train {

/// Whole lines, and what became of them. May be used again.
struct EncodedLines {
  std::string_view text;               ///< the lines; must stay while they are encoded
  std::vector<TokenId> ids;            ///< ids of all lines or sequences, one after the other
  std::vector<std::uint8_t> segments;  ///< for pairs: one an id
  std::vector<std::int32_t> labels;    ///< for corrections: one an id
  std::vector<Index> lengths;          ///< lengths of each line or sequence
  std::vector<Index> places;           ///< the line of each, from 1 in the piece
  std::uint64_t lines = 0;             ///< that were read
  RepairedLines repaired;              ///< what was not UTF-8 in them
  RepairedLines surrogates;            ///< in JSON: lone surrogates
  CutText cut;                         ///< in pairs: what is beyond the length, cut or skipped
  Index left_out = 0;                  ///< in corrections: pairs of different numbers of tokens
  /// Problem of the last of `lines`; then nothing after it was read.
  std::string problem;
};

/// Encodes lines for every format but records: of lines and blocks the ids of each line with at
/// least one token, of pairs whole sequences. Immutable, thread-safe.
class LineEncoder {
 public:
  /// Takes what it needs from `tokenizer` and `options`; keeps no reference. Not for records.
  /// Throws as read_corpus for lengths and separators that do not fit.
  LineEncoder(const text::Tokenizer& tokenizer, const CorpusOptions& options);

  /// What sequences of lines and blocks are made of. Not for pairs.
  SequenceShape shape() const;
  /// CorpusOptions::begin, if it stands in front of lines.
  const std::optional<TokenId>& begin() const { return begin_; }

  /// Fills everything of `piece` but its text, which is encoded. `encoder` has no template; it
  /// belongs to the calling thread.
  void encode(text::IdEncoder& encoder, EncodedLines& piece) const;
  /// Counts a text or pair of `size` tokens in `piece`, with a problem if it is refused as too
  /// long; whether it is read, whole or cut. Of pairs encode() does it.
  bool is_taken(std::size_t size, EncodedLines& piece) const;

 private:
  void add_line(text::IdEncoder& encoder, std::string_view line, EncodedLines& piece) const;
  void add_pair(text::IdEncoder& encoder, std::string_view line, EncodedLines& piece) const;
  void join_pair(std::vector<TokenId> source, std::vector<TokenId> target,
                 EncodedLines& piece) const;
  void add_source_and_target(std::vector<TokenId> source, std::vector<TokenId> target,
                             EncodedLines& piece) const;
  void add_correction(std::vector<TokenId> source, std::vector<TokenId> target,
                      EncodedLines& piece) const;

  CorpusFormat format_;
  std::optional<std::string> field_;
  bool corrections_;
  std::optional<model::SourceDesign> source_;
  evaluate::LengthPolicy::Kind policy_;
  std::optional<TokenId> unknown_;
  text::TemplateTokens around_;
  text::TemplateTokens around_target_;  ///< with `source_`
  std::optional<TokenId> separator_, begin_;
  Index room_ = 0;
};

}  // namespace masque::train
