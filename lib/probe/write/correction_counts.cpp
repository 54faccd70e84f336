#include "probe/write/correction_counts.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "probe/score/word_error_rate.hpp"

namespace masque::probe {

namespace {

using Words = std::vector<std::string_view>;

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

WantedWords wanted_words(std::span<const std::string_view> text,
                         std::span<const std::string_view> reference) {
  WantedWords out;
  out.words.resize(text.size());
  if (text.size() == reference.size()) {
    std::ranges::copy(reference, out.words.begin());
    return out;
  }
  for (const WordPair& pair : align_words(reference, text)) {
    if (!pair.hypothesis) ++out.missing;
    if (pair.hypothesis && pair.reference) out.words[*pair.hypothesis] = reference[*pair.reference];
  }
  return out;
}

double CorrectionCount::precision() const { return share(right, done); }
double CorrectionCount::recall() const { return share(right, wanted); }
double CorrectionCount::f1() const { return share(2 * right, done + wanted); }

void CorrectionCounts::add(std::string_view text, std::string_view output,
                           std::string_view reference) {
  const Words before = split_words(text);
  const Words after = split_words(output);
  MASQUE_CHECK(before.size() == after.size());
  const WantedWords wanted = wanted_words(before, split_words(reference));
  bool changed = false, detected = wanted.missing == 0, corrected = detected, wrong = !detected;
  word_detection.wanted += wanted.missing;
  word_correction.wanted += wanted.missing;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const bool was_wrong = wanted.words[i] != before[i];
    const bool is_changed = after[i] != before[i];
    const bool is_right = wanted.words[i] == after[i];
    word_detection.wanted += was_wrong ? 1 : 0;
    word_detection.done += is_changed ? 1 : 0;
    word_detection.right += was_wrong && is_changed ? 1 : 0;
    word_correction.right += is_changed && is_right ? 1 : 0;
    changed |= is_changed;
    wrong |= was_wrong;
    detected &= was_wrong == is_changed;
    corrected &= is_right;
  }
  word_correction.wanted = word_detection.wanted;
  word_correction.done = word_detection.done;
  sentence_detection.wanted += wrong ? 1 : 0;
  sentence_detection.done += changed ? 1 : 0;
  sentence_detection.right += wrong && detected ? 1 : 0;
  sentence_correction.right += wrong && corrected ? 1 : 0;
  sentence_correction.wanted = sentence_detection.wanted;
  sentence_correction.done = sentence_detection.done;
}

}  // namespace masque::probe
