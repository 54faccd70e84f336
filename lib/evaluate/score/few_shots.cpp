#include "evaluate/score/few_shots.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "evaluate/score/text_scorer.hpp"

namespace masque::evaluate {

ShotSampler::ShotSampler(Index labels, Index count, std::uint64_t seed)
    : count_(count), stream_(seed, "few shots"), drawn_(static_cast<std::size_t>(labels)) {
  MASQUE_CHECK(count >= 1);
}

void ShotSampler::add(Shot shot) {
  const PhiloxBlock block = stream_.for_item(shot.id).block(0);
  const std::uint64_t number = (std::uint64_t{block[0]} << 32) | block[1];
  auto& drawn = drawn_[static_cast<std::size_t>(shot.label)];
  const Key key(number, shot.id);
  if (std::ssize(drawn) == count_) {
    if (drawn.rbegin()->first < key) return;
    drawn.erase(std::prev(drawn.end()));
  }
  MASQUE_CHECK(drawn.emplace(key, std::move(shot)).second);
}

std::vector<Shot> ShotSampler::drawn(const std::vector<VerbalizedLabel>& names) const {
  std::vector<Shot> out;
  for (std::size_t l = 0; l < drawn_.size(); ++l) {
    if (std::ssize(drawn_[l]) < count_) {
      throw InputError(fmt::format("label '{}' has {} texts, expected at least {}",
                                   escape(names[l].name), drawn_[l].size(), count_));
    }
    for (const auto& [key, shot] : drawn_[l]) out.push_back(shot);
  }
  std::ranges::sort(out, {}, &Shot::id);
  return out;
}

bool has_cloze_records(ScoreKind kind) { return is_masked(kind) || kind == ScoreKind::kTta; }

std::vector<records::Record> cloze_records(const ClozeSentence& cloze, ScoreKind kind,
                                           TokenId mask) {
  MASQUE_CHECK(has_cloze_records(kind));
  const Sentence& sentence = cloze.sentence;
  records::Record record;
  record.ids = sentence.ids;
  if (!sentence.segments.empty()) {
    std::vector<std::int32_t>& seg = record.seg.make(sentence.segments.size());
    std::ranges::transform(sentence.segments, seg.begin(),
                           [](Index segment) { return static_cast<std::int32_t>(segment); });
  }
  std::ranges::fill(record.labels.make(sentence.ids.size()), records::kNoLabel);
  std::vector<records::Record> out;
  if (kind == ScoreKind::kTta) out.push_back(record);
  for (Index t = cloze.begin; t < cloze.end; ++t) {
    const auto at = static_cast<std::size_t>(t);
    if (kind != ScoreKind::kTta) {
      out.push_back(record);
      for (const Index u : hidden_with(kind, sentence, t))
        out.back().ids[static_cast<std::size_t>(u)] = mask;
    }
    out.back().labels.values[at] = sentence.ids[at];
  }
  return out;
}

}  // namespace masque::evaluate
