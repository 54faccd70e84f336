#include "evaluate/write/threshold_search.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "base/error.hpp"
#include "base/thread/interrupt.hpp"
#include "evaluate/score/word_error_rate.hpp"

namespace masque::evaluate {

namespace {

constexpr double kNoGain = -std::numeric_limits<double>::infinity();

/// What `gain` exceeds, and `next` does not; the number below `gain` where there is no next one.
double threshold_below(double gain, std::optional<double> next) {
  const double threshold = next ? std::midpoint(*next, gain) : gain - 1;
  if (threshold < gain) return threshold;
  return next.value_or(std::nextafter(gain, kNoGain));
}

}  // namespace

void ThresholdSearch::add(std::string_view text, std::span<const CheckedWord> words,
                          std::string_view reference) {
  const std::vector<std::string_view> before = split_words(text);
  const WantedWords wanted = wanted_words(before, split_words(reference));
  wanted_ += wanted.missing;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (wanted.words[i] != before[i]) ++wanted_;
  }
  const auto begin_of = [&](std::size_t i) {
    return static_cast<std::size_t>(before[i].data() - text.data());
  };
  std::size_t at = 0;
  std::optional<std::size_t> open;
  for (const CheckedWord& word : words) {
    if (word.replacement.empty() || !(word.gain() > kNoGain)) continue;
    while (at < before.size() && begin_of(at) + before[at].size() <= word.span.begin) ++at;
    MASQUE_CHECK(at < before.size() && word.span.begin >= begin_of(at) &&
                 word.span.end <= begin_of(at) + before[at].size());
    if (open != at) words_.push_back({std::string(before[at]), std::nullopt, {}});
    if (open != at && wanted.words[at]) words_.back().wanted = *wanted.words[at];
    open = at;
    CheckedWord& checked = words_.back().checked.emplace_back(word);
    checked.span.begin -= static_cast<std::uint32_t>(begin_of(at));
    checked.span.end -= static_cast<std::uint32_t>(begin_of(at));
    gains_.emplace_back(word.gain(), words_.size() - 1);
  }
}

std::optional<ThresholdSearch::Best> ThresholdSearch::best() const {
  std::vector<std::pair<double, std::size_t>> gains = gains_;
  std::ranges::sort(gains, std::greater<>());
  struct State {
    bool done = false, right = false;
  };
  std::vector<State> states(words_.size());
  std::optional<Best> best;
  CorrectionCount count{.wanted = wanted_};
  for (std::size_t i = 0; i < gains.size();) {
    throw_if_interrupted();
    std::size_t end = i;
    while (end < gains.size() && gains[end].first == gains[i].first) ++end;
    const auto next = end < gains.size() ? std::optional(gains[end].first) : std::nullopt;
    const double threshold = threshold_below(gains[i].first, next);
    for (; i < end; ++i) {
      const Word& word = words_[gains[i].second];
      State& state = states[gains[i].second];
      count.done -= state.done ? 1 : 0;
      count.right -= state.right ? 1 : 0;
      const std::string after = corrected(word.text, word.checked, threshold);
      state.done = after != word.text;
      state.right = state.done && word.wanted == after;
      count.done += state.done ? 1 : 0;
      count.right += state.right ? 1 : 0;
    }
    if (count.f1() > (best ? best->words.f1() : 0)) best = {threshold, count};
  }
  return best;
}

}  // namespace masque::evaluate
