// Logits of transformers next to a model of tests/data, and what a model has to do with them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "model/model.hpp"
#include "store/checkpoint.hpp"

namespace masque::test {

/// All elements of the tensor `name`, whose type has the size of Number.
template <class Number>
std::vector<Number> read_all(const store::Checkpoint& checkpoint, const std::string& name) {
  const store::TensorInfo& info = checkpoint.get(name);
  std::vector<Number> numbers(info.elements());
  REQUIRE(info.bytes() == numbers.size() * sizeof(Number));
  checkpoint.read(info, 0, std::as_writable_bytes(std::span(numbers)));
  return numbers;
}

/// Compares the logits that the model at `path` computes of the tensor `ids` of `golden` in float64
/// with its tensor `logits`, those of a decoder with its `source`; where it has none, the last
/// hidden states with its `states`, those of its token `types`.
inline void check_golden_logits(const std::string& path, const store::Checkpoint& golden) {
  /// All logits of a run, row by row.
  class Logits final : public model::Observer {
   public:
    void last_states(Index sequence, Index first, MatrixView<const double> x) override {
      logits(sequence, first, x);
    }
    void logits(Index /*sequence*/, Index /*first*/, MatrixView<const double> x) override {
      for (Index i = 0; i < x.rows; ++i)
        numbers.insert(numbers.end(), x.row(i), x.row(i) + x.columns);
    }
    std::vector<double> numbers;
  };
  const bool states = golden.find("logits") == nullptr;
  const auto expected = read_all<float>(golden, states ? "states" : "logits");
  const bool pairs = golden.find("source") != nullptr;
  const auto model =
      model::open_model(path, {.precision = kernel::Precision::kF64, .decoder = pairs});
  model::Batch batch;
  batch.add(read_all<std::int32_t>(golden, "ids"));
  model::Request request;
  if (states) {
    const auto types = read_all<std::int32_t>(golden, "types");
    batch.segments.assign(types.begin(), types.end());
  }
  if (pairs) batch.sources = {read_all<std::int32_t>(golden, "source")};
  request.all_rows = true;
  (states ? request.last_states : request.logits) = true;
  Logits found;
  model->run(batch, request, &found);
  REQUIRE(found.numbers.size() == expected.size());
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
    difference = std::max(difference, std::abs(found.numbers[i] - expected[i]));
  }
  CHECK(difference < 2e-6 * largest);
}

}  // namespace masque::test
