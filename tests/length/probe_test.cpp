// What is reported of attention at other lengths.
#include "length/probe.hpp"

#include <cmath>
#include <mutex>

#include <doctest/doctest.h>

#include "length/length_bench.hpp"

namespace masque::length {
using namespace train;
namespace {

using test::Bench;
using test::kCausal;
using test::kLearned;
using test::kRotary;

/// Entropy, deviation of scores and log of the mean Z of every row of one head of a layer, from the
/// scores themselves.
class Brute final : public model::Observer {
 public:
  explicit Brute(Index wanted) : layer(wanted) {}
  void attention_rows(Index, Index l, Index, const model::AttentionRows<float>& rows) override {
    if (l != layer) return;
    const std::lock_guard lock(mutex_);
    double all_z = 0;
    for (Index i = 0; i < rows.scores.rows; ++i) {
      double sum = 0, squares = 0, z = 0, weighted = 0, n = 0;
      for (const float s : rows.scores.row_span(i)) {
        if (std::isinf(s)) continue;
        const double x = static_cast<double>(s);
        ++n;
        sum += x;
        squares += x * x;
        z += std::exp(x);
        weighted += x * std::exp(x);
      }
      entropy += std::log(z) - weighted / z;
      spread += std::sqrt(std::max(0.0, squares / n - sum / n * (sum / n)));
      all_z += z / static_cast<double>(rows.scores.rows);
      ++count;
    }
    log_z += std::log(all_z);
    ++heads;
  }
  Index layer;
  double entropy = 0, spread = 0, log_z = 0, count = 0, heads = 0;

 private:
  std::mutex mutex_;  // heads may come at the same time
};

TEST_CASE("attention at a length is that of the scores") {
  Bench bench;
  for (const std::string& members : {kRotary, kLearned + kCausal}) {
    const model::TreatableModel& model = bench.model(members);
    const std::vector<Index> lengths{8, 12};
    const LengthStream stream = bench.stream(bench.request("tta", lengths));
    const auto rows = probe_lengths(bench.grid(model, {}, lengths), stream, true);
    REQUIRE(rows.size() == 6);
    CHECK(!rows[3].layer.has_value());
    const auto own = model::open_model(model.path(), {});
    for (Index layer = 0; layer < 2; ++layer) {
      const AttentionAtLength& row = rows[static_cast<std::size_t>(4 + layer)];
      CHECK(row.cell.length == 12);
      CHECK(row.layer == layer);
      CHECK(row.blocks == std::ssize(stream.examples(12)));
      Brute brute(layer);
      for (const Example& block : stream.examples(12)) {
        model::Batch batch;
        batch.add(block.ids);
        const model::Request request{
            .attentions = true, .attention_rows = true, .attention_scores = true};
        own->run(batch, request, &brute);
      }
      CHECK(row.entropy == doctest::Approx(brute.entropy / brute.count).epsilon(1e-4));
      CHECK(row.score_spread == doctest::Approx(brute.spread / brute.count).epsilon(1e-4));
      CHECK(row.log_partition == doctest::Approx(brute.log_z / brute.heads).epsilon(1e-4));
    }
    CHECK(rows[3].entropy == doctest::Approx((rows[4].entropy + rows[5].entropy) / 2));
  }
}

TEST_CASE("a mean over queries that all read one key is a sink") {
  Bench bench;
  const model::TreatableModel& model = bench.model(kRotary);
  const LengthStream stream = bench.stream(bench.request("tta", {12}));
  const auto rows =
      probe_lengths(bench.grid(model, {.masks = "full; keep(0); diagonal"}, {12}), stream, false);
  REQUIRE(rows.size() == 3);
  CHECK(rows[1].sink == doctest::Approx(1));
  CHECK(rows[1].entropy == doctest::Approx(0));
  CHECK(rows[2].max_weight == doctest::Approx(1));
  CHECK(rows[2].sink == doctest::Approx(1.0 / 12));
  CHECK(rows[0].entropy > 0.5);
}

}  // namespace
}  // namespace masque::length
