// The names that a pickle of torch.save may mention. There is no other way to one of them: a name
// that is not here is refused where it stands.
#pragma once

#include <optional>
#include <string_view>

#include "tensor/dtype.hpp"

namespace masque::store {

/// What a name means to the machine.
enum class PickleRole : unsigned char {
  kOrderedDict,
  kCounter,
  kRebuildTensor,          ///< (storage, offset, sizes, strides)
  kRebuildTensorV2,        ///< … requires_grad, hooks[, metadata]
  kRebuildTensorV3,        ///< … requires_grad, hooks, dtype[, metadata]
  kRebuildParameter,       ///< (tensor, requires_grad, hooks)
  kRebuildParameterState,  ///< … state
  kRebuildFromType,        ///< (function, type, arguments, state)
  kTensorType,             ///< Parameter or Tensor
  kSize,                   ///< (sizes)
  kOther,                  ///< makes something that is never looked at
  kStorage,                ///< a storage class of typed elements
  kUntypedStorage,         ///< a storage class of bytes
  kDtype,                  ///< an element type
};

/// A name, and the element type that it stands for, if it does for one.
struct PickleGlobal {
  std::string_view module;
  std::string_view name;
  PickleRole role;
  std::optional<DType> dtype = std::nullopt;
};

/// The known name; nullptr if there is none. Lives for ever.
const PickleGlobal* find_pickle_global(std::string_view module, std::string_view name);

/// Why a name that is not known is refused, as far as one can say more than that it is no data;
/// may be empty.
std::string_view why_refused(std::string_view module, std::string_view name);

/// The storage class ("FloatStorage") of an element type that has one; otherwise nullptr.
const PickleGlobal* storage_class_of(DType dtype);

/// torch's name of an element type ("float32"); nullptr if it has none.
const PickleGlobal* torch_dtype_of(DType dtype);

}  // namespace masque::store
