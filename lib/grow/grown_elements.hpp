// The elements of a grown tensor, computed from the rows of the tensor that it is made from.
#pragma once

#include <optional>
#include <string>

#include "grow/width_rules.hpp"
#include "store/checkpoint.hpp"
#include "store/transfer.hpp"

namespace masque::grow {

/// What a tensor of the larger model is made from. The tensors are the checkpoint's.
struct GrownTensor {
  const store::TensorInfo* from = nullptr;  ///< the tensor of the small model; required
  /// The tensor of the next layer, for what UnitCopies::next marks; nullptr: `from` serves there
  /// too.
  const store::TensorInfo* next = nullptr;
  TensorGrowth growth;             ///< rows, columns, scale and shape
  std::optional<double> constant;  ///< of all elements, in place of those of `from`
  /// Standard deviation of normal noise, as a share of each row's root mean square.
  double noise = 0;
  RandomStream stream{0, ""};  ///< of the noise; item r for row r of the file that is written
};

/// The bytes of `tensor` in `dtype`, a floating-point type. Numbers are computed in double and
/// rounded once. Memory: a row of both tensors for each thread, and the copies of both axes.
/// `checkpoint` must outlive it. Reading it throws InputError.
store::Source grown_elements(const store::Checkpoint& checkpoint, GrownTensor tensor, DType dtype);

}  // namespace masque::grow
