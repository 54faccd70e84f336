#include "model/checkpoint/training_state.hpp"

#include <fmt/format.h>

namespace masque::model {

std::string state_tensor_name(std::string_view what, std::string_view parameter) {
  return fmt::format("{}.{}", what, parameter);
}

std::string parameter_name(const ModelPlan& plan, const PlacedTensor& tensor,
                           const TensorPart& part) {
  std::string name = written_name(plan, tensor);
  if (tensor.parts.size() > 1) name += fmt::format("#{}", static_cast<int>(part.role));
  return name;
}

RoleShape parameter_shape(const Design& design, const PlacedTensor& tensor,
                          const TensorPart& part) {
  const RoleShape shape = role_shape(design, part.role, part.part);
  if (!tensor.bias) return shape;
  return {1, is_norm(part.role) ? shape.columns : shape.rows};
}

}  // namespace masque::model
