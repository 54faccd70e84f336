#include "probe/score/ngram_matches.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>

namespace masque::probe {

namespace {

/// An n-gram that no reference has.
constexpr std::uint32_t kNoNgram = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t kFewestSlots = 64;

}  // namespace

void WordNumbers::start(std::size_t words) {
  ++round_;
  next_ = 0;
  if (slots_.size() < 2 * words || slots_.empty())
    slots_.assign(std::bit_ceil(std::max(2 * words, kFewestSlots)), {});
}

char32_t WordNumbers::number(std::string_view word) {
  std::size_t at = std::hash<std::string_view>{}(word) & (slots_.size() - 1);
  while (slots_[at].round == round_ && slots_[at].word != word) at = (at + 1) & (slots_.size() - 1);
  Slot& slot = slots_[at];
  if (slot.round != round_) slot = {word, round_, next_++};
  return slot.number;
}

std::size_t NgramMatcher::slot_of(std::uint64_t key) const {
  std::size_t at = (key * 0x9E3779B97F4A7C15U) >> shift_;
  while (slots_[at].round == round_ && slots_[at].key != key) at = (at + 1) & (slots_.size() - 1);
  return at;
}

std::uint32_t NgramMatcher::intern(std::uint64_t key) {
  Slot& slot = slots_[slot_of(key)];
  if (slot.round != round_) slot = {key, round_, next_++};
  return slot.id;
}

void NgramMatcher::match(std::u32string_view hypothesis,
                         std::span<const std::u32string_view> references,
                         std::span<std::uint32_t> matches) {
  std::size_t all = 0;
  for (const std::u32string_view r : references) all += r.size();
  if (slots_.size() < 2 * all || slots_.empty()) {
    slots_.assign(std::bit_ceil(std::max(2 * all, kFewestSlots)), {});
    shift_ = 64U - static_cast<unsigned>(std::countr_zero(slots_.size()));
  }
  hypothesis_.assign(hypothesis.size(), 0);
  references_.assign(all, 0);
  // An n-gram is the (n − 1)-gram that it begins with, by its number, and its last symbol.
  const auto key = [](std::uint32_t head, char32_t last) {
    return std::uint64_t{head} << 32 | std::uint64_t{last};
  };
  for (std::size_t n = 1; n <= matches.size(); ++n) {
    ++round_;
    next_ = 0;
    most_.assign(all, 0);
    count_.assign(all, 0);
    std::size_t begin = 0;
    for (const std::u32string_view r : references) {
      const std::size_t places = r.size() < n ? 0 : r.size() - n + 1;
      const std::span<std::uint32_t> ids(references_.data() + begin, places);
      for (std::size_t i = 0; i < places; ++i) {
        ids[i] = intern(key(ids[i], r[i + n - 1]));
        most_[ids[i]] = std::max(most_[ids[i]], ++count_[ids[i]]);
      }
      for (const std::uint32_t id : ids) count_[id] = 0;
      begin += r.size();
    }
    matches[n - 1] = 0;
    for (std::size_t i = 0; i + n <= hypothesis.size(); ++i) {
      std::uint32_t& id = hypothesis_[i];
      if (id == kNoNgram) continue;
      const Slot& slot = slots_[slot_of(key(id, hypothesis[i + n - 1]))];
      id = slot.round == round_ ? slot.id : kNoNgram;
      if (id != kNoNgram && count_[id]++ < most_[id]) ++matches[n - 1];
    }
  }
}

}  // namespace masque::probe
