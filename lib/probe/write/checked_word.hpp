// A word of a text with the best replacement for it, and the text with the replacements.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "text/tokenizer.hpp"

namespace masque::probe {

/// A word and its replacement with the largest gain. Log-probabilities are in nats, given the rest
/// of the line. For a word of several pieces it is the sum over the pieces, each given the pieces
/// before it, with those after it hidden (Kauf and Ivanova 2023, arXiv:2305.10588). With one_pass
/// each piece is given all others; with a detector it is given the unmasked line, including the
/// word.
struct CheckedWord {
  text::Span span;                         ///< bytes of the line
  double log_probability = 0;              ///< of the word itself
  std::string replacement;                 ///< empty: the word has no candidate
  double replacement_log_probability = 0;  ///< of the replacement in its place
  double edit_cost = 0;                    ///< of all edits of the replacement
  /// With a detector: the largest probability that a piece of the word is wrong.
  std::optional<double> error_probability;

  /// Gain of the replacement in nats, after the cost of edits.
  double gain() const { return replacement_log_probability - edit_cost - log_probability; }
};

/// `text` with the replacements that gain more than `threshold` nats. `words`, whose spans are
/// bytes of it, are from left to right and do not overlap.
std::string corrected(std::string_view text, std::span<const CheckedWord> words, double threshold);

}  // namespace masque::probe
