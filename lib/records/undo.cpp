#include "records/undo.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include <fmt/format.h>

#include "base/error.hpp"

namespace masque::records {

namespace {

void put_back(Record& record) {
  const std::size_t n = record.size();
  const std::size_t total = n + record.dropped.size();
  if (!record.pos.present) throw InputError("has dropped but no pos, expected pos");
  if (record.cu_seqlens.present) {
    throw InputError(
        "has tokens that were dropped from packed documents, which cannot be put back: their "
        "positions start again in each");
  }
  std::vector<DroppedToken> all = record.dropped;
  all.reserve(total);
  for (std::size_t i = 0; i < n; ++i) all.push_back({record.pos.values[i], record.ids[i]});
  std::stable_sort(all.begin(), all.end(),
                   [](const DroppedToken& a, const DroppedToken& b) { return a.pos < b.pos; });
  for (std::size_t i = 1; i < total; ++i) {
    if (all[i].pos == all[i - 1].pos) {
      throw InputError(
          fmt::format("position {} occurs twice in pos and dropped: were the positions renumbered?",
                      all[i].pos));
    }
  }
  record.ids.resize(total);
  for (std::size_t i = 0; i < total; ++i) record.ids[i] = all[i].id;
  // Positions that only said where the gaps were are no longer needed.
  std::vector<std::int32_t>& pos = record.pos.make(total);
  for (std::size_t i = 0; i < total; ++i) pos[i] = all[i].pos;
  std::vector<std::int32_t> plain(total);
  std::iota(plain.begin(), plain.end(), 0);
  if (pos == plain) record.pos.clear();
  for (Numbers* list : {&record.seg, &record.doc, &record.words}) list->clear();
  record.has_weights = false;
  record.weights.clear();
}

class Undo final : public Corruption {
 public:
  void apply(Record& record, Scratch&, Tally&) const override {
    const bool dropped = record.has_dropped && !record.dropped.empty();
    const bool halves = has_clean_half(record);
    if (halves) {
      record.keep_first(record.size() / 2);
      record.has_weights = false;
      record.weights.clear();
    }
    if (record.original.present) {
      if (record.original.values.size() != record.size()) {
        if (dropped)
          throw InputError(
              "has both dropped and an original of another length, expected one of them");
        for (Numbers* list : {&record.pos, &record.seg, &record.doc, &record.words}) list->clear();
        record.has_weights = false;
        record.weights.clear();
      }
      record.ids = record.original.values;
    } else if (record.labels.present && labels_are_own(record)) {
      for (std::size_t i = 0; i < record.size(); ++i) {
        if (record.labels.values[i] != kNoLabel) record.ids[i] = record.labels.values[i];
      }
    }
    if (!labels_are_own(record) && record.mask->starts_with("unilm(")) record.seg.clear();
    record.original.clear();
    record.labels.clear();
    if (!record.cu_seqlens.present) record.mask.reset();
    if (dropped) put_back(record);
    if ((record.has_dropped || halves) && record.pos.present) drop_plain_positions(record);
    record.has_dropped = false;
    record.dropped.clear();
    for (const TokenId id : record.ids) {
      if (id < 0) throw InputError(fmt::format("id {} to restore, expected at least 0", id));
    }
  }

 private:
  static void drop_plain_positions(Record& record) {
    if (record.position_ids) return;  // which model counts from 0 is not known
    for (std::size_t i = 0; i < record.size(); ++i) {
      if (record.pos.values[i] != static_cast<std::int32_t>(i)) return;
    }
    record.pos.clear();
  }
};

}  // namespace

std::unique_ptr<Corruption> make_undo() { return std::make_unique<Undo>(); }

void CorruptionStats::see(const Record& record, const TokenTable& tokens) {
  ++tally.records;
  tally.tokens_in += record.size();
  tally.dropped += record.dropped.size();
  for (const DroppedToken& token : record.dropped)
    tally.ordinary += tokens.is_special(token.id) ? 0U : 1U;
  const bool electra = record.original.present && record.original.values.size() == record.size();
  const std::size_t counted = has_clean_half(record) ? record.size() / 2 : record.size();
  for (std::size_t i = 0; i < counted; ++i) {
    const TokenId id = record.ids[i];
    const std::int32_t label =
        record.labels.present && labels_are_own(record) ? record.labels.values[i] : kNoLabel;
    const TokenId before = electra ? record.original.values[i] : label != kNoLabel ? label : id;
    if (!tokens.is_special(before)) {
      ++tally.ordinary;
      ++remaining;
    }
    if (electra) {
      replaced_labels += label == 1 ? 1U : 0U;
      continue;
    }
    if (label == kNoLabel) continue;
    ++tally.selected;
    ++(id == label ? tally.kept : id == tokens.mask ? tally.masked : tally.random);
  }
}

void CorruptionStats::add(const CorruptionStats& other) {
  tally.add(other.tally);
  remaining += other.remaining;
  replaced_labels += other.replaced_labels;
}

double chi_squared_tail(double statistic, int degrees) {
  // Q(a + 1, x) = Q(a, x) + x^a e^-x / Γ(a + 1), from Q(1/2, x) = erfc(√x) or Q(0, x) = 0.
  const double x = statistic / 2;
  const bool odd = degrees % 2 != 0;
  double tail = odd ? std::erfc(std::sqrt(x)) : 0;
  double term = odd ? 2 * std::sqrt(x / std::numbers::pi) * std::exp(-x) : std::exp(-x);
  for (double a = odd ? 1.5 : 1; 2 * a <= degrees; ++a) {
    tail += term;
    term *= x / a;
  }
  return tail;
}

ChiSquared chi_squared(const std::vector<std::uint64_t>& counts,
                       const std::vector<double>& shares) {
  const auto total =
      static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}));
  ChiSquared test;
  test.degrees = -1;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double expected = shares[i] * total;
    const double difference = static_cast<double>(counts[i]) - expected;
    if (shares[i] > 0) ++test.degrees;
    if (difference != 0) test.statistic += difference * difference / expected;
  }
  test.degrees = std::max(test.degrees, 0);
  if (std::isinf(test.statistic)) {
    test.p = 0;
  } else if (test.degrees > 0) {
    test.p = chi_squared_tail(test.statistic, test.degrees);
  }
  return test;
}

}  // namespace masque::records
