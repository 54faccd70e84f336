// N-best lists of a speech recogniser, rescored with a language model.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.hpp"
#include "evaluate/score/word_error_rate.hpp"

namespace masque::evaluate {

/// A text that the recogniser considers.
struct Hypothesis {
  std::string text;           ///< its words
  double score = 0;           ///< score of the recogniser, log
  double language_score = 0;  ///< language score of the language model, log; filled by the caller
  Index tokens = 0;           ///< number of tokens that it is the sum of; filled by the caller
};

/// An utterance with its hypotheses in the order of the file.
struct Utterance {
  std::string name;                      ///< name of the utterance in the file
  std::optional<std::string> reference;  ///< no value for new audio
  std::vector<Hypothesis> hypotheses;    ///< at least one
};

/// Reads lists from `text`, `path` for messages: lines "utterance, score, hypothesis, reference"
/// separated by tabs (a first line of these names is skipped; lines of an utterance follow each
/// other), ESPnet's JSON ({"utts": {NAME: {"output": [{"rec_text", "score", "text"} …]}}}), or that
/// of mlm-scoring ({NAME: {"ref", "hyp_1": {"score", "text"} …}}). In ESPnet's texts "▁" is a
/// space, and `<sos>`, `<eos>` and `<blank>` are left out. References (the fourth field, "text",
/// "ref") are optional, but then missing for every utterance. Throws InputError, also for text that
/// is not UTF-8.
///
/// In JSON, lone surrogates are read as U+FFFD; `lone_surrogates`, if it is not nullptr, gets their
/// number.
std::vector<Utterance> read_nbest(std::string_view text, const std::string& path,
                                  std::uint64_t* lone_surrogates = nullptr);

/// The divisor of the language model's score of a hypothesis.
struct LengthNormalization {
  /// A formula.
  enum class Kind {
    kNone,   ///< 1
    kGnmt,   ///< ((5 + tokens) / 6)^α: Wu 2016, arXiv:1609.08144, eq. 14
    kPower,  ///< tokens^α
  };
  Kind kind = Kind::kNone;  ///< the formula
  double alpha = 0;         ///< α, at least 0

  /// The divisor for `tokens` tokens; with kPower that of none is 1.
  double divisor(Index tokens) const;
};

/// Reads `text`: "none", "gnmt:ALPHA", "power:ALPHA". Throws UsageError about
/// `length_normalization`.
LengthNormalization parse_length_normalization(std::string_view text);

/// The index of the hypothesis of `utterance` with the highest combined_score() by `weight` and
/// `length`; of equal ones the first (Salazar 2020, arXiv:1910.14659, as in its code). There must
/// be a hypothesis.
std::size_t choose(const Utterance& utterance, double weight, const LengthNormalization& length);

/// Whether `utterances`, as read_nbest() gives them, have references.
bool has_references(std::span<const Utterance> utterances);

/// The score by which `hypothesis` is chosen: score + `weight` · language_score / divisor by
/// `length`.
double combined_score(const Hypothesis& hypothesis, double weight,
                      const LengthNormalization& length);

/// Errors of the hypotheses that choose() takes of `utterances` by `weight` and `length`. There are
/// references.
WordErrors errors_at(std::span<const Utterance> utterances, double weight,
                     const LengthNormalization& length);
/// Errors of the hypothesis with the fewest errors of each of `utterances`. There are references.
WordErrors oracle_errors(std::span<const Utterance> utterances);

}  // namespace masque::evaluate
