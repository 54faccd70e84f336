#include "model/checkpoint/save.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "tensor/dtype.hpp"

namespace masque::model {
namespace {

constexpr std::uint64_t kFloatBytes = 4;

/// Row and column of the model's matrix at a flat place of the file's tensor.
std::pair<Index, Index> place_of_element(const PlacedTensor& tensor, Index flat) {
  const Index width = tensor.vector ? 1 : tensor.columns;
  switch (tensor.layout) {
    case TensorLayout::kOutIn:
    case TensorLayout::kNextRow: return {flat / width, flat % width};
    case TensorLayout::kInOut: return {flat % tensor.rows, flat / tensor.rows};
    case TensorLayout::kHeadTriples: break;
  }
  const Index rows = tensor.vector ? tensor.columns : tensor.rows;
  const Index size = rows / (3 * tensor.heads);
  const Index row = flat / width;
  const Index head = row / (3 * size);
  const Index part = row / size % 3;
  return {(part * tensor.heads + head) * size + row % size, flat % width};
}

store::OutputTensor output_of(std::shared_ptr<const NamedTensor> tensor) {
  store::OutputTensor output;
  output.info.name = tensor->name;
  output.info.dtype = DType::kF32;
  output.info.shape = tensor->placed.shape;
  store::Computed source;
  source.fill = [tensor = std::move(tensor)](std::uint64_t offset, MutableBytes out) {
    std::vector<float> values(out.size() / kFloatBytes);
    tensor->read(offset / kFloatBytes, values);
    std::ranges::copy(std::as_bytes(std::span(values)), out.begin());
  };
  output.source = std::move(source);
  return output;
}

}  // namespace

void NamedTensor::read(std::uint64_t begin, std::span<float> out) const {
  const auto first = static_cast<Index>(begin);
  for (std::size_t i = 0; i < out.size(); ++i) {
    auto [row, column] = place_of_element(placed, first + static_cast<Index>(i));
    std::size_t p = 0;
    while (row >= placed.parts[p].rows) row -= placed.parts[p++].rows;
    out[i] = placed.vector ? parts[p].at(placed.parts[p].first_row, row) : parts[p].at(row, column);
  }
}

store::OutputTensor output_tensor(NamedTensor tensor) {
  return output_of(std::make_shared<const NamedTensor>(std::move(tensor)));
}

std::vector<NamedTensor> named_tensors(const ModelPlan& plan, ModelWeights<float> weights) {
  const HeadDesign& head = plan.design.head;
  const HeadPlan* head_plan = head.kind == HeadKind::kNone ? nullptr : head_like(plan, head);
  MASQUE_CHECK(head.kind == HeadKind::kNone || head_plan != nullptr);
  std::vector<NamedTensor> tensors;
  for (PlacedTensor& placed : placed_tensors(plan, head_plan)) {
    NamedTensor tensor;
    tensor.name = written_name(plan, placed);
    for (const TensorPart& part : placed.parts) {
      const Weight<float>& weight = weight_of(network_of(weights, placed.detector), part.role,
                                              placed.bias, part.layer, part.part);
      const MatrixView<const float> view = weight.view;
      if (!weight)
        throw UsageError(fmt::format("the design needs tensor '{}', which the model does not have",
                                     tensor.name));
      MASQUE_CHECK(view.columns == (placed.vector ? part.rows : placed.columns));
      MASQUE_CHECK(placed.vector ? part.first_row < view.rows : part.rows == view.rows);
      tensor.parts.push_back(view);
    }
    tensor.placed = std::move(placed);
    for (std::string& name : written_names(plan, tensor.placed)) {
      tensor.name = std::move(name);
      tensors.push_back(tensor);
    }
  }
  std::ranges::sort(tensors, {}, &NamedTensor::name);
  return tensors;
}

ModelFiles model_files(const Design& design, const ModelWeights<float>& weights,
                       const TrainingConfig& training, const std::string& prefix) {
  const SavedConfig config = config_of(design, training);
  ModelFiles files;
  files.weights.name = prefix + "model.safetensors";
  files.weights.metadata = {{"format", "pt"}};
  for (NamedTensor& tensor : named_tensors(plan_of(design), weights)) {
    files.weights.tensors.push_back(output_tensor(std::move(tensor)));
  }
  files.config = {prefix + "config.json", store::Literal{config.text}, config.text.size(), 0644};
  return files;
}

void save_model(const std::string& path, const Design& design, const ModelWeights<float>& weights,
                const SaveOptions& options) {
  save_model(path, model_files(design, weights, options.training), options);
}

void save_model(const std::string& path, ModelFiles files, const SaveOptions& options) {
  std::vector<store::OutputExtra> extras = options.files;
  extras.push_back(std::move(files.config));
  std::vector<store::OutputWeights> all = options.more;
  all.insert(all.begin(), std::move(files.weights));
  store::write_checkpoint_folder(path, all, extras, options.write);
}

}  // namespace masque::model
