#include "train/run/leak_probe.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/interrupt.hpp"
#include "mask/expression.hpp"
#include "model/masks.hpp"

namespace masque::train {

namespace {

constexpr Index kLookedAt = 32;  // sequences, of which the shortest are taken
constexpr std::size_t kSequences = 2;
constexpr Index kRows = 4;  // of a sequence
constexpr double kTolerance = 1e-6;

/// What the rows of an example may read.
std::optional<mask::Mask> mask_of(const Example& example, const model::Design& design) {
  if (design.streams == model::Streams::kTwo && example.query_mask) return example.query_mask;
  if (example.mask) return example.mask;
  if (design.mask == model::DefaultMask::kFull) return std::nullopt;
  const mask::Lengths lengths{example.size(), example.size()};
  return model::default_mask(design.mask).bind(lengths);
}

/// Where a row's target stands in the input, hidden from the row; nothing if it does not.
std::optional<Index> hidden_target(const Example& example, const mask::Mask& mask, std::size_t k) {
  const Index row = example.rows[k];
  for (const Index place : {row + 1, row, row - 1}) {
    if (place < 0 || place >= example.size() || mask.allows(row, place)) continue;
    if (example.ids[static_cast<std::size_t>(place)] == example.targets[k]) return place;
  }
  return std::nullopt;
}

/// An example with one row and its loss.
Example with_row(const Example& from, std::size_t k) {
  Example example = from;
  example.rows = {from.rows[k]};
  example.targets = {from.targets[k]};
  example.weights.clear();
  return example;
}

std::vector<float> last_state(Network<float>& network, const Example& example) {
  Matrix<float> last(1, network.design().hidden_size);
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
    const std::optional<mask::Mask> mask = mask_of(example, network.design());
    if (!mask) continue;
    Index probed = 0;
    for (std::size_t k = 0; k < example.rows.size() && probed < kRows; ++k) {
      const std::optional<Index> place = hidden_target(example, *mask, k);
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
