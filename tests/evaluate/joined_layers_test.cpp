// Statistics of attention whose scores join those of other layers or heads, against its maps.
#include <cmath>
#include <utility>

#include <doctest/doctest.h>

#include "evaluate/attention/attention_stats.hpp"
#include "evaluate/attention/head_maps.hpp"
#include "model/checkpoint/save.hpp"
#include "model/random_model.hpp"
#include "support/temp_folder.hpp"

namespace masque::evaluate {
namespace {

/// The entropy of the mean of two rows less the mean of theirs.
double divergence_of(std::span<const double> a, std::span<const double> b) {
  const auto part = [](double p) { return p > 0 ? -p * std::log(p) : 0.0; };
  double sum = 0;
  for (std::size_t j = 0; j < a.size(); ++j)
    sum += part((a[j] + b[j]) / 2) - (part(a[j]) + part(b[j])) / 2;
  return sum;
}

/// Of two maps: the cosine of all their numbers, and the mean divergence of rows.
std::pair<double, double> similarity_of(MatrixView<const double> a, MatrixView<const double> b) {
  double products = 0, of_a = 0, of_b = 0, divergence = 0;
  for (Index i = 0; i < a.rows; ++i) {
    for (Index j = 0; j < a.columns; ++j) {
      products += a.at(i, j) * b.at(i, j);
      of_a += a.at(i, j) * a.at(i, j);
      of_b += b.at(i, j) * b.at(i, j);
    }
    divergence += divergence_of(a.row_span(i), b.row_span(i));
  }
  return {products / std::sqrt(of_a * of_b), divergence / static_cast<double>(a.rows)};
}

TEST_CASE("similarity of layers whose scores are joined, as their maps give it") {
  for (const std::string members :
       {R"("previous_scores": "one_layer")", R"("previous_scores": "accumulated")",
        R"("previous_scores": "accumulated", "largest_keys": 3)", R"("largest_keys": 2)",
        R"("talking_heads": "before", "previous_scores": "one_layer")",
        R"("position": "shaw", "previous_scores": "one_layer")"}) {
    CAPTURE(members);
    const model::Design design =
        model::test::tiny_design("\"num_hidden_layers\": 3, \"mask\": \"causal\", " + members);
    const test::TempFolder folder = test::TempFolder::in_memory();
    model::save_model(folder / "joined", design, model::test::random_weights<float>(design, 5));
    for (const auto precision : {kernel::Precision::kF32, kernel::Precision::kF64}) {
      const auto model = model::open_model(folder / "joined", {.precision = precision});
      MarkedItem item;
      item.sequence.ids = {2, 7, 9, 8, 11, 3};
      const auto layers = static_cast<std::size_t>(design.num_hidden_layers);
      std::vector<std::vector<Matrix<double>>> maps(layers);
      for (auto& heads : maps) heads.resize(static_cast<std::size_t>(design.num_attention_heads));
      each_head(*model, item.sequence, {},
                [&](Index layer, Index head, MatrixView<const double> weights) {
                  maps[static_cast<std::size_t>(layer)][static_cast<std::size_t>(head)] =
                      Matrix<double>::copy(weights);
                });
      AttentionStats stats(*model, {.compares_layers = true});
      stats.add(item);
      stats.flush();
      for (std::size_t layer = 1; layer < layers; ++layer) {
        for (std::size_t h = 0; h < maps[layer].size(); ++h) {
          const HeadTotals& head =
              stats.totals().of(static_cast<Index>(layer), static_cast<Index>(h));
          const auto own = std::as_const(maps[layer][h]).view();
          const auto below = similarity_of(own, std::as_const(maps[layer - 1][h]).view());
          const auto lowest = similarity_of(own, std::as_const(maps[0][h]).view());
          CHECK(std::fabs(head.mean(HeadField::kBelowCosine) - below.first) < 1e-5);
          CHECK(std::fabs(head.mean(HeadField::kBelowDivergence) - below.second) < 1e-5);
          CHECK(std::fabs(head.mean(HeadField::kLowestCosine) - lowest.first) < 1e-5);
          CHECK(std::fabs(head.mean(HeadField::kLowestDivergence) - lowest.second) < 1e-5);
          CHECK(head.count(HeadField::kPartitionSlope) == 1);
        }
      }
    }
  }
}

}  // namespace
}  // namespace masque::evaluate
