// A word of a text with the best replacement for it, and the text with the replacements.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "text/tokenizer.hpp"

namespace masque::probe {

/// A word and the one with the largest gain for its place. Log-probabilities are in nats, given the
/// rest of the line: of several pieces the sum of each one's, those before it in the word known,
/// those after it hidden too (Kauf and Ivanova 2023, arXiv:2305.10588); of one_pass all others
/// known; of a detector given the line as it stands, the word too.
struct CheckedWord {
  text::Span span;  ///< bytes of the line
  double log_probability = 0;
  std::string replacement;  ///< empty: nothing else may stand there
  double replacement_log_probability = 0;
  double edit_cost = 0;  ///< of all edits of the replacement
  /// Of a model with a detector: how likely the piece is wrong that is likeliest to be.
  std::optional<double> error_probability;

  /// Nats that speak for the replacement.
  double gain() const { return replacement_log_probability - edit_cost - log_probability; }
};

/// The text with the replacements that gain more than `threshold` nats. `words` are from left to
/// right and do not overlap.
std::string corrected(std::string_view text, std::span<const CheckedWord> words, double threshold);

}  // namespace masque::probe
