#include "model/checkpoint/unused_tensors.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/parse_number.hpp"

namespace masque::model {

namespace {

/// The module of a tensor: its name up to the last dot.
std::string_view module_of(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
}

/// Whether a tensor holds positions, ids or angles that some versions of programs save.
bool is_saved_buffer(std::string_view name) {
  constexpr auto kEndings = std::to_array<std::string_view>(
      {"rotary_emb.inv_freq", "rotary_emb.cos_cached", "rotary_emb.sin_cached",
       "embeddings.position_ids", "embeddings.token_type_ids", "embed_positions.weight"});
  return std::ranges::any_of(kEndings, [&](std::string_view end) { return name.ends_with(end); });
}

std::string with_own_prefix(std::string_view name, const std::string& prefix) {
  return name.starts_with('~') ? prefix + std::string(name.substr(1)) : std::string(name);
}

}  // namespace

UnusedTensors::UnusedTensors(const ModelPlan& model, std::string prefix, Index layers,
                             const std::unordered_set<std::string>& used)
    : model_(model), prefix_(std::move(prefix)), layers_(layers) {
  for (const TensorRow& row : model_.rows) {
    for_spellings(row.name, [&](std::string_view name) {
      const std::size_t begin = name.starts_with('~') ? prefix_.size() : 0;
      const std::string full = with_own_prefix(name, prefix_);
      parts_.insert(full.substr(0, full.find('.', begin)));
    });
  }
  for (const std::string& name : used) modules_.emplace(module_of(name));
  // A tied one may be absent.
  for (const HeadPlan& head : model_.heads)
    for_spellings(head.decoder, [&](std::string_view name) { modules_.emplace(module_of(name)); });
}

bool UnusedTensors::is_of_further_layer(const std::string& name) {
  for (const TensorRow& row : model_.rows) {
    const std::size_t mark = row.name.find("{l}");
    if (mark == std::string::npos || row.detector) continue;
    const std::string before = with_own_prefix(std::string_view(row.name).substr(0, mark), prefix_);
    if (!name.starts_with(before)) continue;
    std::string_view rest = std::string_view(name).substr(before.size());
    const auto layer = take_number<Index>(rest);
    if (!layer || !rest.starts_with('.') || *layer < layers_) continue;
    most_layers_ = std::max(most_layers_, *layer + 1);
    return true;
  }
  return false;
}

void UnusedTensors::check(const std::string& path, const std::string& name) {
  if (is_saved_buffer(name) || is_of_further_layer(name)) return;
  std::string dotted = name;
  std::ranges::replace(dotted, '/', '.');  // TensorFlow's names
  const auto covers = [&](const std::string& part) {
    return dotted == part || dotted.starts_with(part + ".");
  };
  const std::string_view module = module_of(name);
  if (std::ranges::none_of(parts_, covers) && (module.empty() || !modules_.contains(module)))
    return;
  throw InputError(
      path, fmt::format("tensor '{}' is not used by family {}, expected none next to the tensors "
                        "of its embeddings, layers and head: it is of another kind of model",
                        escape(name), model_.design.family));
}

std::optional<std::string> UnusedTensors::note(const Design& design) const {
  if (most_layers_ == 0) return std::nullopt;
  return fmt::format("layers {} to {} of the weights are ignored: config.json has {} layers",
                     layers_, most_layers_ - 1, design.num_hidden_layers);
}

}  // namespace masque::model
