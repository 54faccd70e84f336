#include "probe/perplexity.hpp"

#include <cmath>
#include <limits>
#include <numbers>

namespace masque::probe {

void Perplexity::add(const ScoredSentence& sentence, std::uint64_t text_bytes) {
  ++lines;
  bytes += text_bytes;
  for (const std::optional<double>& value : sentence.log_probabilities) {
    if (value) tokens.add(*value);
  }
}

void Perplexity::add(const Perplexity& other) {
  lines += other.lines;
  bytes += other.bytes;
  tokens.add(other.tokens);
}

double Perplexity::per_token() const {
  return tokens.n == 0 ? std::numeric_limits<double>::quiet_NaN() : std::exp(-tokens.mean);
}

double Perplexity::bits_per_byte() const {
  if (bytes == 0) return std::numeric_limits<double>::quiet_NaN();
  return -tokens.sum() / std::numbers::ln2 / static_cast<double>(bytes);
}

}  // namespace masque::probe
