#include "evaluate/score/perplexity.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/error.hpp"

namespace masque::evaluate {

namespace {

/// Draws of different texts are independent.
void add_variance(const std::optional<double>& of, std::optional<double>& sum) {
  if (of) sum = sum.value_or(0) + *of;
}

}  // namespace

std::uint64_t scored_bytes(const ScoredSentence& sentence) {
  const std::uint64_t all = sentence.sentence.text_bytes;
  const std::size_t count = sentence.log_probabilities.size();
  if (count == 0) return all;
  MASQUE_CHECK(sentence.sentence.spans.size() == sentence.sentence.ids.size());
  const auto prefix = static_cast<std::size_t>(sentence.sentence.prefix);
  std::uint64_t bytes = 0;
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < count; ++i) {
    // Pieces of one character have the same span: the first takes it.
    const std::uint64_t end =
        i + 1 == count ? all
                       : std::max<std::uint64_t>(before, sentence.sentence.spans[prefix + i].end);
    if (sentence.log_probabilities[i]) bytes += end - before;
    before = end;
  }
  return bytes;
}

void Perplexity::add(const ScoredSentence& sentence) {
  ++lines;
  bytes += scored_bytes(sentence);
  for (const std::optional<double>& value : sentence.log_probabilities) {
    if (value) tokens.add(*value);
  }
  add_variance(sentence.score_variance, score_variance);
}

void Perplexity::add(const Perplexity& other) {
  lines += other.lines;
  bytes += other.bytes;
  tokens.add(other.tokens);
  add_variance(other.score_variance, score_variance);
}

double Perplexity::per_token() const {
  return tokens.n == 0 ? std::numeric_limits<double>::quiet_NaN() : std::exp(-tokens.mean);
}

double Perplexity::standard_error() const {
  return per_token() * std::sqrt(score_variance.value_or(0)) / static_cast<double>(tokens.n);
}

double Perplexity::bits_per_byte() const {
  if (bytes == 0) return std::numeric_limits<double>::quiet_NaN();
  return -tokens.sum() / std::numbers::ln2 / static_cast<double>(bytes);
}

}  // namespace masque::evaluate
