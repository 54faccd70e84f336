#include "probe/check/check_sane.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/parallel.hpp"
#include "model/variants.hpp"
#include "store/tensor_stats.hpp"

namespace masque::probe {

SaneHeads::SaneHeads(const model::Model& model, double tolerance)
    : model_(model), tolerance_(tolerance) {
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
  request.attentions = true;
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

}  // namespace masque::probe
