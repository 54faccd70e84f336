#include "train/data/example.hpp"

#include <numeric>

#include "base/error.hpp"

namespace masque::train {

void ExampleChunk::want_all() {
  wanted.resize(ids.size());
  std::iota(wanted.begin(), wanted.end(), Index{0});
  wanted_begins = begins;
}

ExampleChunk ExampleChunk::sources() const {
  ExampleChunk chunk;
  for (std::size_t s = 0; s + 1 < source_begins.size(); ++s) {
    Example source;
    source.ids.assign(source_ids.begin() + source_begins[s],
                      source_ids.begin() + source_begins[s + 1]);
    chunk.add(source);
  }
  chunk.want_all();
  return chunk;
}

void ExampleChunk::add(const Example& example) {
  MASQUE_CHECK(example.rows.size() == example.targets.size());
  MASQUE_CHECK(sequences() == 0 || sparse == example.sparse);
  sparse = example.sparse;
  const Index first = rows();
  ids.insert(ids.end(), example.ids.begin(), example.ids.end());
  for (Index i = 0; i < example.size(); ++i) {
    positions.push_back(example.positions.empty() ? i
                                                  : example.positions[static_cast<std::size_t>(i)]);
  }
  if (!example.segments.empty() || !segments.empty()) {
    segments.resize(static_cast<std::size_t>(first), 0);
    segments.insert(segments.end(), example.segments.begin(), example.segments.end());
    segments.resize(ids.size(), 0);
  }
  begins.push_back(rows());
  source_ids.insert(source_ids.end(), example.source.begin(), example.source.end());
  source_begins.push_back(std::ssize(source_ids));
  masks.push_back(example.mask);
  query_masks.push_back(example.query_mask);
  for (const Index row : example.rows) wanted.push_back(first + row);
  wanted_begins.push_back(static_cast<Index>(wanted.size()));
  targets.insert(targets.end(), example.targets.begin(), example.targets.end());
  weights.insert(weights.end(), example.weights.begin(), example.weights.end());
  const auto before = static_cast<std::ptrdiff_t>(targets.size() - example.targets.size());
  weights.resize(targets.size(), 1.0);
  if (example.divisor) {
    divisors.push_back(*example.divisor);
  } else {
    divisors.insert(divisors.end(), weights.begin() + before, weights.end());
  }
  offsets.insert(offsets.end(), example.offsets.begin(), example.offsets.end());
  offsets.resize(targets.size(), 0.0);
}

void leave_out_first_row(Example& example) {
  if (example.rows.empty() || example.rows.front() != 0) return;
  const auto drop = [](auto& values) {
    if (!values.empty()) values.erase(values.begin());
  };
  drop(example.rows);
  drop(example.targets);
  drop(example.weights);
  drop(example.offsets);
}

Index tokens_of(std::span<const Example> examples) {
  Index tokens = 0;
  for (const Example& example : examples) tokens += example.all_tokens();
  return tokens;
}

ExampleChunk take_chunk(std::span<const Example>& examples, Index rows) {
  MASQUE_CHECK(!examples.empty());
  ExampleChunk chunk;
  Index tokens = 0;
  do {
    tokens += examples.front().all_tokens();
    chunk.add(examples.front());
    examples = examples.subspan(1);
  } while (!examples.empty() && tokens + examples.front().all_tokens() <= rows);
  return chunk;
}

}  // namespace masque::train
