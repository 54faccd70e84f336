// N-best lists of a speech recogniser, rescored with a language model.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.hpp"
#include "probe/score/word_error_rate.hpp"

namespace masque::probe {

struct Hypothesis {
  std::string text;
  double score = 0;           ///< of the recogniser, log
  double language_score = 0;  ///< of the language model, log; filled by the caller
  Index tokens = 0;           ///< of which that is the sum; filled by the caller
};

/// An utterance with its hypotheses in the order of the file.
struct Utterance {
  std::string name;
  std::optional<std::string> reference;  ///< no value for new audio
  std::vector<Hypothesis> hypotheses;
};

/// Reads lists from a text, `path` for messages: lines "utterance, score, hypothesis, reference"
/// separated by tabs (a first line of these names is skipped; lines of an utterance follow each
/// other), ESPnet's JSON ({"utts": {NAME: {"output": [{"rec_text", "score", "text"} …]}}}), or that
/// of mlm-scoring ({NAME: {"ref", "hyp_1": {"score", "text"} …}}). In ESPnet's texts "▁" is a
/// space, and <sos>, <eos> and <blank> are left out. References (the fourth field, "text", "ref")
/// are optional, but then missing for every utterance. Throws InputError, also for text that is not
/// UTF-8.
std::vector<Utterance> read_nbest(std::string_view text, const std::string& path);

/// The divisor of the language model's score of a hypothesis.
struct LengthNormalization {
  enum class Kind {
    kNone,
    kGnmt,   ///< ((5 + tokens) / 6)^α: Wu 2016, arXiv:1609.08144, eq. 14
    kPower,  ///< tokens^α
  };
  Kind kind = Kind::kNone;
  double alpha = 0;

  double divisor(Index tokens) const;
};

/// "none", "gnmt:ALPHA", "power:ALPHA". Throws UsageError about `length_normalization`.
LengthNormalization parse_length_normalization(std::string_view text);

/// The index of the hypothesis with the highest combined_score(); of equal ones the first (Salazar
/// 2020, arXiv:1910.14659, as in its code). There must be a hypothesis.
std::size_t choose(const Utterance& utterance, double weight, const LengthNormalization& length);

/// Whether read_nbest() found references.
bool has_references(std::span<const Utterance> utterances);

/// The score by which a hypothesis is chosen: score + weight · language_score / divisor.
double combined_score(const Hypothesis& hypothesis, double weight,
                      const LengthNormalization& length);

/// Errors of the chosen hypotheses. There are references.
WordErrors errors_at(std::span<const Utterance> utterances, double weight,
                     const LengthNormalization& length);
/// Errors of the hypothesis with the fewest errors of each list. There are references.
WordErrors oracle_errors(std::span<const Utterance> utterances);

}  // namespace masque::probe
