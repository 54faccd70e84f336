#include "records/prefix.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"

namespace masque::records {

namespace {

class Prefix final : public Corruption {
 public:
  Prefix(const PrefixOptions& options, std::unique_ptr<Corruption> bidirectional)
      : options_(options),
        bidirectional_(std::move(bidirectional)),
        random_(options.seed, "droptoken prefix") {}

  void apply(Record& record, Scratch& scratch, Tally& tally) const override {
    if (record.labels.present) throw InputError("record already has labels");
    if (record.mask) throw InputError("record already has a mask");
    if (record.seg.present) throw InputError("record already has seg");
    const auto n = static_cast<Index>(record.size());
    Draw draw(random_.stream(record.epoch, record.number));
    const double total = std::accumulate(options_.mix.begin(), options_.mix.end(), 0.0);
    double at = draw.uniform() * total;
    std::size_t objective = 0;
    while (objective < 3 && at >= options_.mix[objective]) at -= options_.mix[objective++];
    if (objective == 0) {
      record.mask = "full";
      if (bidirectional_) return bidirectional_->apply(record, scratch, tally);
    }
    tally.ordinary += record.size();
    switch (objective) {
      case 0: return;
      case 1: return split(record, draw, tally);
      case 2: record.mask = "causal"; return label(record, 0, n - 1, 1, tally);
      default: record.mask = "reverse"; return label(record, 1, n, -1, tally);
    }
  }

 private:
  /// Positions first … last − 1 predict the token `step` further.
  static void label(Record& record, Index first, Index last, Index step, Tally& tally) {
    std::vector<std::int32_t>& labels = record.labels.make(record.size());
    std::fill(labels.begin(), labels.end(), kNoLabel);
    for (Index i = first; i < last; ++i) {
      labels[static_cast<std::size_t>(i)] = record.ids[static_cast<std::size_t>(i + step)];
      ++tally.selected;
    }
  }

  void split(Record& record, Draw& draw, Tally& tally) const {
    const auto n = static_cast<Index>(record.size());
    const double share = options_.low + (options_.high - options_.low) * draw.uniform();
    // Both parts have a token, if there are two.
    const Index source =
        n < 2 ? n : std::clamp<Index>(std::llround(share * static_cast<double>(n)), 1, n - 1);
    std::vector<std::int32_t>& seg = record.seg.make(record.size());
    for (Index i = 0; i < n; ++i) seg[static_cast<std::size_t>(i)] = i < source ? 0 : 1;
    record.mask = fmt::format("unilm({},{})", source, n - source);
    // The last source token predicts the first of the target.
    label(record, std::max<Index>(0, source - 1), n - 1, 1, tally);
  }

  PrefixOptions options_;
  std::unique_ptr<Corruption> bidirectional_;
  RandomSource random_;
};

}  // namespace

std::unique_ptr<Corruption> make_prefix(const PrefixOptions& options,
                                        std::unique_ptr<Corruption> bidirectional) {
  if (!(options.low >= 0 && options.low <= options.high && options.high <= 1)) {
    throw UsageError(fmt::format("{}: found {}:{}, expected two increasing numbers from 0 to 1",
                                 field("source"), options.low, options.high));
  }
  double total = 0;
  for (const double weight : options.mix) {
    if (!(weight >= 0) || std::isinf(weight)) {
      throw UsageError(
          fmt::format("{}: found {}, expected weights of at least 0", field("mix"), weight));
    }
    total += weight;
  }
  if (!(total > 0)) throw UsageError(fmt::format("{}: expected a weight above 0", field("mix")));
  return std::make_unique<Prefix>(options, std::move(bidirectional));
}

}  // namespace masque::records
