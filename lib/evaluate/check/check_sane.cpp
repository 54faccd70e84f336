#include "evaluate/check/check_sane.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/thread/parallel.hpp"
#include "model/variants.hpp"
#include "store/tensor_stats.hpp"

namespace masque::evaluate {

SaneHeads::SaneHeads(const model::Model& model, double tolerance, bool source)
    : model_(model), tolerance_(tolerance), source_(source) {
  const model::Design& design = model.design();
  heads_.resize(static_cast<std::size_t>(design.num_hidden_layers * value_heads(design)));
  not_finite_.resize(static_cast<std::size_t>(design.num_hidden_layers) + 1);
}

void SaneHeads::add(const CheckInput& input) {
  if (input.ids.empty()) return;
  model::Batch batch;
  batch.add(input.ids, parts_of(input));
  model::Request request;
  request.hidden_states = true;
  request.attentions = !source_;
  request.source_attentions = source_;
  request.all_rows = true;
  text_is_finite_ = true;
  const auto problem = input_error_message([&] { model_.run(batch, request, this); });
  if (problem && text_is_finite_) throw InputError(*problem);
}

template <class T>
void SaneHeads::add_state(Index state, MatrixView<const T> x) {
  for (Index i = 0; i < x.rows; ++i) {
    const auto row = x.row_span(i);
    if (std::all_of(row.begin(), row.end(), [](T v) { return std::isfinite(v); })) continue;
    not_finite_[static_cast<std::size_t>(state)] = true;
    text_is_finite_ = false;
  }
}

template <class T>
void SaneHeads::add_map(Index layer, Index head, MatrixView<const T> weights) {
  Head& seen = heads_[static_cast<std::size_t>(layer * value_heads(model_.design()) + head)];
  seen.mapped = seen.mapped || weights.rows > 1;
  std::vector<double> least(static_cast<std::size_t>(weights.columns), 1);  // share of each key
  Index used = 0;
  for (Index i = 0; i < weights.rows; ++i) {
    double sum = 0;
    double visible = 0;
    for (const T w : weights.row_span(i)) {
      sum += w;
      visible += w > 0 ? 1 : 0;
    }
    if (!(sum > 0)) continue;  // a row that sees nothing
    seen.mass = true;
    ++used;
    for (Index j = 0; j < weights.columns; ++j) {
      const double share = weights.at(i, j) / sum;
      least[static_cast<std::size_t>(j)] = std::min(least[static_cast<std::size_t>(j)], share);
      if (share > 0 && visible > 1) {
        seen.deviation = std::max(seen.deviation, std::abs(share * visible - 1));
        seen.spread = true;
      }
    }
  }
  if (used < 2) return;
  const auto most = std::max_element(least.begin(), least.end());
  const auto key = static_cast<Index>(most - least.begin());
  seen.key = !seen.any || seen.key == key ? key : -1;
  seen.any = true;
  seen.share = std::min(seen.share, *most);
}

void SaneHeads::hidden_states(Index, Index state, MatrixView<const float> x) {
  add_state(state, x);
}
void SaneHeads::hidden_states(Index, Index state, MatrixView<const double> x) {
  add_state(state, x);
}
void SaneHeads::attention(Index, Index layer, Index head, MatrixView<const float> weights) {
  add_map(layer, head, weights);
}
void SaneHeads::attention(Index, Index layer, Index head, MatrixView<const double> weights) {
  add_map(layer, head, weights);
}

void SaneHeads::source_attention(Index, Index layer, Index head, MatrixView<const float> weights) {
  add_map(layer, head, weights);
}
void SaneHeads::source_attention(Index, Index layer, Index head, MatrixView<const double> weights) {
  add_map(layer, head, weights);
}

std::vector<SaneRow> SaneHeads::rows() const {
  SaneRow uniform{.check = "uniform_head", .value = std::numeric_limits<double>::infinity()};
  SaneRow stuck{.check = "stuck_head"};
  SaneRow dead{.check = "dead_head"};
  SaneRow states{.check = "not_finite_state", .checked = not_finite_.size()};
  const auto heads = static_cast<std::size_t>(value_heads(model_.design()));
  for (std::size_t h = 0; h < heads_.size(); ++h) {
    const Head& head = heads_[h];
    const std::string place = fmt::format("layer {} head {}", h / heads, h % heads);
    if (head.mapped) {
      ++dead.checked;
      if (!head.mass) dead.places.push_back(place);
    }
    if (!head.any) continue;
    ++stuck.checked;
    stuck.value = std::max(stuck.value, head.share);
    if (head.share >= 1 - tolerance_) {
      stuck.places.push_back(head.key < 0 ? place : fmt::format("{} key {}", place, head.key));
    }
    if (!head.spread) continue;
    ++uniform.checked;
    uniform.value = std::min(uniform.value, head.deviation);
    if (head.deviation <= tolerance_) uniform.places.push_back(place);
  }
  if (uniform.checked == 0) uniform.value = 0;
  for (std::size_t l = 0; l < not_finite_.size(); ++l) {
    if (not_finite_[l]) states.places.push_back(fmt::format("hidden_states {}", l));
  }
  states.value = static_cast<double>(states.places.size());
  dead.value = static_cast<double>(dead.places.size());
  for (SaneRow* row : {&uniform, &stuck, &dead, &states}) row->found = row->places.size();
  return {uniform, stuck, dead, states};
}

SaneRow check_finite(const store::Checkpoint& checkpoint, int threads) {
  SaneRow row{.check = "not_finite_tensor"};
  for (const store::TensorInfo& tensor : checkpoint.tensors()) {
    if (!is_float(tensor.dtype)) continue;
    ++row.checked;
    const store::TensorStats stats = store::tensor_stats(checkpoint, tensor, threads);
    const std::uint64_t bad = stats.nans + stats.infinities;
    row.value += static_cast<double>(bad);
    if (bad == 0) continue;
    row.places.push_back(
        fmt::format("{} ({} nan, {} inf)", tensor.name, stats.nans, stats.infinities));
  }
  row.found = row.places.size();
  return row;
}

// What a model's weights say without a text.

namespace {

using model::LayerWeights;
using model::LoadedModel;
using model::NormWeights;

/// A row this near to the mean row, in mean row norms, is the mean.
constexpr double kIsMean = 1e-6;

/// Of the values plus `offset`.
double largest(std::span<const float> values, double offset = 0) {
  double most = 0;
  for (const float v : values) most = std::max(most, std::abs(static_cast<double>(v) + offset));
  return most;
}

/// The largest value that a head can add to the output, up to sums: the largest of its value
/// projection times the largest of its output projection.
double head_reach(const model::Design& design, const model::DenseWeights<float>& values,
                  const model::DenseWeights<float>& outputs, Index head) {
  const Index groups = projected_value_heads(design);
  const Index group = head / (value_heads(design) / groups);
  const Index size = values.weight.view.rows / groups;
  double value = 0;
  for (Index c = group * size; c < (group + 1) * size; ++c) {
    value = std::max(value, largest(values.weight.view.row_span(c)));
    if (values.bias) {
      value = std::max(
          value, std::abs(static_cast<double>(values.bias.span()[static_cast<std::size_t>(c)])));
    }
  }
  const auto columns = outputs.weight.view.middle_columns(head * size, size);
  double output = 0;
  for (Index i = 0; i < columns.rows; ++i) {
    output = std::max(output, largest(columns.row_span(i)));
  }
  return value * output;
}

SaneRow zero_heads(const LoadedModel<float>& model, bool source) {
  const model::Design& design = model.design;
  SaneRow row{.check = "zero_head", .value = std::numeric_limits<double>::infinity()};
  for (std::size_t l = 0; l < design.layers.size(); ++l) {
    const auto& layer = model.weights.layers[static_cast<std::size_t>(design.layers[l].weights)];
    const auto& values = source ? layer.source_value : layer.value;
    const auto& outputs = source ? layer.source_output : layer.output;
    if (!values.weight) continue;  // gated layers have no heads
    for (Index h = 0; h < value_heads(design); ++h) {
      ++row.checked;
      const double reach = head_reach(design, values, outputs, h);
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
    const double most = largest(norm.weight.span(), model.design.norm.weight_offset);
    row.value = std::min(row.value, most);
    if (most == 0) row.places.push_back(place);
  };
  const auto& w = model.weights;
  check(w.embedding_norm, "embedding norm");
  check(w.relative_norm, "relative norm");
  for (std::size_t l = 0; l < w.layers.size(); ++l) {
    check(w.layers[l].attention_norm, fmt::format("layer {} attention norm", l));
    check(w.layers[l].source_norm, fmt::format("layer {} source norm", l));
    check(w.layers[l].feed_forward_norm, fmt::format("layer {} feed-forward norm", l));
    check(w.layers[l].convolution_norm, fmt::format("layer {} convolution norm", l));
    check(w.layers[l].attention_output_norm, fmt::format("layer {} attention output norm", l));
    check(w.layers[l].feed_forward_output_norm,
          fmt::format("layer {} feed-forward output norm", l));
    check(w.layers[l].query_norm, fmt::format("layer {} query norm", l));
    check(w.layers[l].key_norm, fmt::format("layer {} key norm", l));
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
                                   const std::vector<std::pair<std::string, TokenId>>& special,
                                   bool source) {
  std::vector<SaneRow> rows = {zero_heads(model, source), zero_norms(model),
                               special_rows(model, special)};
  for (std::size_t r = 0; r < 2; ++r) rows[r].found = rows[r].places.size();
  return rows;
}

}  // namespace masque::evaluate
