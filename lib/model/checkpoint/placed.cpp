#include "model/checkpoint/placed.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/error.hpp"
#include "model/detector.hpp"
#include "model/family_names.hpp"

namespace masque::model {

namespace {

/// "a|b" with the ending: "a.weight|b.weight".
std::string with_ending(std::string_view names, std::string_view ending) {
  std::string result;
  for_spellings(names, [&](std::string_view name) {
    result += fmt::format("{}{}{}", result.empty() ? "" : "|", name, ending);
  });
  return result;
}

std::uint64_t u(Index size) { return static_cast<std::uint64_t>(size); }

PlacedTensor place(const Design& design, const TensorRow& row, std::string names, bool bias,
                   Index layer) {
  PlacedTensor tensor;
  tensor.names = std::move(names);
  const bool vector = is_vector(row.roles[0]) || row.layout == TensorLayout::kNextRow;
  Index rows = 0;
  Index columns = 0;
  for (Index part = row.part; part < row.part + row.parts_stacked; ++part) {
    for (const Role role : row.roles) {
      RoleShape shape = role_shape(design, role, part);
      if (row.layout == TensorLayout::kNextColumns) shape.columns = design.head_size;
      const Index own = bias && is_norm(role) ? shape.columns : shape.rows;
      tensor.parts.push_back({role, layer, part, vector && !bias ? shape.columns : own});
      rows += own;
      columns = shape.columns;
    }
  }
  tensor.vector = bias || vector;
  tensor.bias = bias;
  tensor.fixed = row.fixed;
  tensor.layout = bias && row.layout == TensorLayout::kInOut ? TensorLayout::kOutIn : row.layout;
  const bool parts = row.layout == TensorLayout::kParts;
  tensor.groups = parts ? row.parts_stacked : design.num_key_value_heads;
  if (tensor.vector) {
    tensor.rows = 1;
    tensor.columns = bias ? rows : columns;
    const bool given = (!bias || row.parts == Parts::kBiasTensor) && !row.shape.empty();
    tensor.shape = given ? row.shape : Shape{u(tensor.columns)};
    if (parts) tensor.shape = {u(tensor.groups), u(rows / tensor.groups)};
    return tensor;
  }
  tensor.rows = rows;
  tensor.columns = columns;
  if (!row.shape.empty()) {
    tensor.shape = row.shape;
  } else if (parts) {
    tensor.shape = {u(tensor.groups), u(columns), u(rows / tensor.groups)};
  } else if (tensor.layout == TensorLayout::kInOut) {
    tensor.shape = {u(columns), u(rows)};
  } else {
    tensor.shape = {u(rows), u(columns)};
  }
  return tensor;
}

void place_parts(const Design& design, const TensorRow& row, const std::string& name, Index layer,
                 std::vector<PlacedTensor>& to) {
  switch (row.parts) {
    case Parts::kBoth:
      to.push_back(place(design, row, with_ending(name, ".weight"), false, layer));
      to.push_back(place(design, row, with_ending(name, ".bias"), true, layer));
      return;
    case Parts::kWeight:
      to.push_back(place(design, row, with_ending(name, ".weight"), false, layer));
      return;
    case Parts::kTensor: to.push_back(place(design, row, name, false, layer)); return;
    case Parts::kBiasTensor: to.push_back(place(design, row, name, true, layer)); return;
  }
}

/// Whether a layer like `layer` has a tensor of `role`.
bool has_role(const LayerDesign& layer, Role role) {
  if (role == Role::kAttentionNorm) return layer.input_norm;
  if (is_of_experts(role)) return layer.experts;
  return !layer.experts || (role != Role::kUp && role != Role::kGate && role != Role::kDown);
}

/// Whether no layer with these weights has what the row names.
bool is_skipped_layer(const Design& design, const TensorRow& row, Index layer) {
  const auto uses = [&](const LayerDesign& l) {
    return l.weights == layer && has_role(l, row.roles[0]);
  };
  return std::ranges::none_of(design.layers, uses);
}

}  // namespace

Index count_layers(const Design& design) {
  Index layers = 0;
  for (const LayerDesign& layer : design.layers) layers = std::max(layers, layer.weights + 1);
  return layers;
}

std::vector<PlacedTensor> place_row(const Design& design, const TensorRow& row) {
  std::vector<PlacedTensor> tensors;
  if (row.detector) {
    TensorRow own = row;
    own.detector = false;
    tensors = place_row(detector_design(design), own);
    for (PlacedTensor& tensor : tensors) tensor.detector = true;
    return tensors;
  }
  constexpr std::string_view kNumber = "{l}";
  if (row.name.find(kNumber) == std::string::npos) {
    place_parts(design, row, row.name, row.layer.value_or(0), tensors);
    return tensors;
  }
  const Index layers = count_layers(design);
  for (Index l = 0; l < layers; ++l) {
    if (is_skipped_layer(design, row, l)) continue;
    std::string name = row.name;
    for (auto at = name.find(kNumber); at != std::string::npos; at = name.find(kNumber)) {
      name.replace(at, kNumber.size(), fmt::format("{}", l));
    }
    place_parts(design, row, name, l, tensors);
  }
  return tensors;
}

std::vector<PlacedTensor> placed_tensors(const ModelPlan& plan, const HeadPlan* head) {
  Design design = plan.design;
  std::vector<TensorRow> rows = plan.rows;
  if (head != nullptr) {
    design.head = head->design;
    rows.insert(rows.end(), head->rows.begin(), head->rows.end());
    if (!head->design.tied && !head->decoder.empty()) {
      rows.push_back({head->decoder, {Role::kDecoder}, Parts::kTensor});
    }
  }
  std::vector<PlacedTensor> tensors;
  std::map<std::pair<Role, Index>, Index> next;  // tensors of a place so far
  for (const TensorRow& row : rows) {
    for (PlacedTensor& tensor : place_row(design, row)) {
      TensorPart& part = tensor.parts[0];
      if (tensor.layout == TensorLayout::kNextRow) part.first_row = next[{part.role, part.layer}]++;
      if (tensor.layout == TensorLayout::kNextColumns)
        part.first_column = part.rows * next[{part.role, part.layer}]++;
      tensors.push_back(std::move(tensor));
    }
  }
  return tensors;
}

std::string written_name(const ModelPlan& plan, const PlacedTensor& tensor) {
  return with_base(plan, std::string_view(tensor.names).substr(tensor.names.rfind('|') + 1));
}

std::vector<std::string> written_names(const ModelPlan& plan, const PlacedTensor& tensor) {
  std::vector<std::string> names = {written_name(plan, tensor)};
  const bool decoder_bias = tensor.bias && tensor.parts[0].role == Role::kDecoder;
  if (!decoder_bias || plan.design.head.tied) return names;
  for_spellings(tensor.names, [&](std::string_view name) {
    std::string other = with_base(plan, name);
    if (other != names.front()) names.push_back(std::move(other));
  });
  return names;
}

std::string with_base(const ModelPlan& plan, std::string_view name) {
  return with_prefix(name, plan.prefix);
}

const HeadPlan* head_like(const ModelPlan& plan, const HeadDesign& head) {
  const auto same = [&](const HeadPlan& one) { return one.design == head; };
  const auto found = std::ranges::find_if(plan.heads, same);
  return found == plan.heads.end() ? nullptr : &*found;
}

}  // namespace masque::model
