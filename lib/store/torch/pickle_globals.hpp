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
  std::string_view module;                    ///< of Python: "torch._utils"; static text
  std::string_view name;                      ///< in the module; static text
  PickleRole role;                            ///< what it means
  std::optional<DType> dtype = std::nullopt;  ///< of kStorage and kDtype
};

/// The known name `name` of `module`; nullptr if there is none. Lives for ever. Those of torch.cuda
/// are found as torch's storage classes.
const PickleGlobal* find_pickle_global(std::string_view module, std::string_view name);

/// Why the name `name` of `module`, which is not known, is refused: static text for users.
std::string_view why_refused(std::string_view module, std::string_view name);

/// The storage class ("FloatStorage") of the element type `dtype`, if it has one; otherwise
/// nullptr.
const PickleGlobal* storage_class_of(DType dtype);

/// torch's name of the element type `dtype` ("float32"); nullptr if it has none.
const PickleGlobal* torch_dtype_of(DType dtype);

}  // namespace masque::store
