// What a model's weights say without a text.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "model/variants.hpp"
#include "probe/check/check_sane.hpp"

namespace masque::probe {

namespace {

using model::LayerWeights;
using model::LoadedModel;
using model::NormWeights;

/// A row this near to the mean row, in mean row norms, is the mean.
constexpr double kIsMean = 1e-6;

double largest(std::span<const float> values) {
  double most = 0;
  for (const float v : values) most = std::max(most, std::abs(static_cast<double>(v)));
  return most;
}

/// The largest value that a head can add to the output, up to sums: the largest of its value
/// projection times the largest of its output projection.
double head_reach(const model::Design& design, const LayerWeights<float>& layer, Index head) {
  const Index groups = projected_value_heads(design);
  const Index group = head / (value_heads(design) / groups);
  const Index size = layer.value.weight.view.rows / groups;
  double value = 0;
  for (Index c = group * size; c < (group + 1) * size; ++c) {
    value = std::max(value, largest(layer.value.weight.view.row_span(c)));
    if (layer.value.bias) {
      value = std::max(
          value,
          std::abs(static_cast<double>(layer.value.bias.span()[static_cast<std::size_t>(c)])));
    }
  }
  const auto columns = layer.output.weight.view.middle_columns(head * size, size);
  double output = 0;
  for (Index i = 0; i < columns.rows; ++i) {
    output = std::max(output, largest(columns.row_span(i)));
  }
  return value * output;
}

SaneRow zero_heads(const LoadedModel<float>& model) {
  const model::Design& design = model.design;
  SaneRow row{.check = "zero_head", .value = std::numeric_limits<double>::infinity()};
  for (std::size_t l = 0; l < design.layers.size(); ++l) {
    const auto& layer = model.weights.layers[static_cast<std::size_t>(design.layers[l].weights)];
    if (!layer.value.weight) continue;  // gated layers have no heads
    for (Index h = 0; h < value_heads(design); ++h) {
      ++row.checked;
      const double reach = head_reach(design, layer, h);
      row.value = std::min(row.value, reach);
      if (reach == 0) row.places.push_back(fmt::format("layer {} head {}", l, h));
    }
  }
  if (row.checked == 0) row.value = 0;
  return row;
}

SaneRow zero_norms(const LoadedModel<float>& model) {
  SaneRow row{.check = "zero_norm", .value = std::numeric_limits<double>::infinity()};
  const auto check = [&](const NormWeights<float>& norm, const std::string& place) {
    if (!norm.weight) return;
    ++row.checked;
    const double most = largest(norm.weight.span());
    row.value = std::min(row.value, most);
    if (most == 0) row.places.push_back(place);
  };
  const auto& w = model.weights;
  check(w.embedding_norm, "embedding norm");
  check(w.relative_norm, "relative norm");
  for (std::size_t l = 0; l < w.layers.size(); ++l) {
    check(w.layers[l].attention_norm, fmt::format("layer {} attention norm", l));
    check(w.layers[l].feed_forward_norm, fmt::format("layer {} feed-forward norm", l));
    check(w.layers[l].convolution_norm, fmt::format("layer {} convolution norm", l));
    check(w.layers[l].attention_output_norm, fmt::format("layer {} attention output norm", l));
    check(w.layers[l].feed_forward_output_norm,
          fmt::format("layer {} feed-forward output norm", l));
    check(w.layers[l].feed_forward_inner_norm, fmt::format("layer {} feed-forward inner norm", l));
  }
  check(w.final_norm, "final norm");
  check(w.head_norm, "head norm");
  if (row.checked == 0) row.value = 0;
  return row;
}

SaneRow special_rows(const LoadedModel<float>& model,
                     const std::vector<std::pair<std::string, TokenId>>& special) {
  SaneRow row{.check = "special_row", .value = std::numeric_limits<double>::infinity()};
  const auto table = model.weights.word_table.view;
  std::vector<double> mean(static_cast<std::size_t>(table.columns));
  double mean_norm = 0;
  for (Index i = 0; i < table.rows; ++i) {
    double squares = 0;
    for (std::size_t c = 0; c < mean.size(); ++c) {
      const double v = table.at(i, static_cast<Index>(c));
      squares += v * v;
      mean[c] += v / static_cast<double>(table.rows);
    }
    mean_norm += std::sqrt(squares) / static_cast<double>(table.rows);
  }
  for (const auto& [name, id] : special) {
    if (id < 0 || id >= table.rows) continue;
    ++row.checked;
    double squares = 0, dot = 0, mean_squares = 0, apart = 0;
    for (std::size_t c = 0; c < mean.size(); ++c) {
      const double v = table.at(id, static_cast<Index>(c));
      squares += v * v;
      dot += v * mean[c];
      mean_squares += mean[c] * mean[c];
      apart += (v - mean[c]) * (v - mean[c]);
    }
    const double distance = mean_norm > 0 ? std::sqrt(apart) / mean_norm : 0;
    const double product = std::sqrt(squares * mean_squares);
    const bool bad = distance <= kIsMean || (squares == 0 && name != "pad");
    row.found += bad ? 1 : 0;
    row.value = std::min(row.value, distance);
    row.places.push_back(fmt::format("{} (id {}): norm {:.3g} of the mean norm, cosine {:.3g}{}",
                                     name, id, mean_norm > 0 ? std::sqrt(squares) / mean_norm : 0,
                                     product > 0 ? dot / product : 0, bad ? ", bad" : ""));
  }
  if (row.checked == 0) row.value = 0;
  return row;
}

}  // namespace

std::vector<SaneRow> check_weights(const LoadedModel<float>& model,
                                   const std::vector<std::pair<std::string, TokenId>>& special) {
  std::vector<SaneRow> rows = {zero_heads(model), zero_norms(model), special_rows(model, special)};
  for (std::size_t r = 0; r < 2; ++r) rows[r].found = rows[r].places.size();
  return rows;
}

}  // namespace masque::probe
