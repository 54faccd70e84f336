#include "train/run/leak_probe.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/interrupt.hpp"
#include "mask/flow.hpp"
#include "train/run/mask_check.hpp"

namespace masque::train {

namespace {

constexpr Index kLookedAt = 32;  // sequences, of which the shortest are taken
constexpr std::size_t kSequences = 2;
constexpr Index kRows = 4;         // of a sequence
constexpr Index kFollowed = 1024;  // tokens: following costs their third power
constexpr double kTolerance = 1e-6;

/// What masks hide from the rows of an example.
class Hidden {
 public:
  Hidden(const Example& example, const model::Design& design, std::optional<Index> offset)
      : example_(example), offset_(offset.value_or(0)), flow_(flow_of(example, design)) {
    if (example.size() <= kFollowed) reach_ = mask::follow_flow(flow_).reach;
  }

  /// Where a row's target stands in the input, hidden from the row; nothing if it does not.
  std::optional<Index> target(std::size_t k) const {
    const Index row = example_.rows[k];
    for (const Index place : {row + offset_, row + 1, row, row - 1}) {
      if (place < 0 || place >= example_.size() || reads(row, place)) continue;
      if (example_.ids[static_cast<std::size_t>(place)] == example_.targets[k]) return place;
    }
    return std::nullopt;
  }

 private:
  bool reads(Index row, Index place) const {
    if (reach_) return reach_->get(row, place);
    if (row == place && flow_.query == mask::QueryStart::kToken) return true;
    return std::ranges::any_of(flow_.layers,
                               [&](const mask::Mask& mask) { return mask.allows(row, place); });
  }

  const Example& example_;
  Index offset_;  ///< where the objective says that targets stand
  mask::FlowRequest flow_;
  std::optional<mask::BitMatrix> reach_;
};

/// An example with one row and its loss.
Example with_row(const Example& from, std::size_t k) {
  Example example = from;
  example.rows = {from.rows[k]};
  example.targets = {from.targets[k]};
  example.weights.clear();
  return example;
}

std::vector<float> last_state(Network<float>& network, const Example& example) {
  Matrix<float> last(1, last_width(network.design()));
  RunOutputs<float> outputs;
  outputs.last = &last;
  network.evaluate({&example, 1}, outputs);
  return {last.span().begin(), last.span().end()};
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return largest;
}

/// The shortest of the first sequences.
std::vector<Index> short_sequences(const Corpus& corpus) {
  std::vector<Index> all;
  for (Index i = 0; i < std::min(corpus.size(), kLookedAt); ++i) {
    if (corpus.length(i) >= 3) all.push_back(i);
  }
  std::ranges::stable_sort(all, {}, [&](Index i) { return corpus.length(i); });
  all.resize(std::min(all.size(), kSequences));
  return all;
}

}  // namespace

std::optional<FoundLeak> probe_leak(Network<float>& network, const Objective& objective,
                                    const Corpus& corpus) {
  network.prepare();
  const auto words = static_cast<TokenId>(network.design().vocab_size);
  for (const Index sequence : short_sequences(corpus)) {
    const Example example = objective.example(corpus.item(sequence), 0);
    const Hidden hidden(example, network.design(), objective.target_offset(example.size()));
    Index probed = 0;
    for (std::size_t k = 0; k < example.rows.size() && probed < kRows; ++k) {
      const std::optional<Index> place = hidden.target(k);
      if (!place) continue;
      ++probed;
      throw_if_interrupted();
      Example one = with_row(example, k);
      const std::vector<float> before = last_state(network, one);
      double scale = 0;
      for (const float x : before) scale = std::max(scale, std::abs(static_cast<double>(x)));
      TokenId& id = one.ids[static_cast<std::size_t>(*place)];
      for (const TokenId step : {1, words / 2}) {
        id = (id + step) % words;
        const double difference = largest_difference(before, last_state(network, one));
        if (difference > kTolerance * scale)
          return FoundLeak{sequence, one.rows[0], *place, difference};
      }
    }
  }
  return std::nullopt;
}

}  // namespace masque::train
