#include "store/torch/pickle_globals.hpp"

#include <algorithm>
#include <array>

namespace masque::store {

namespace {

using Role = PickleRole;

constexpr PickleGlobal storage(std::string_view name, DType dtype) {
  return {"torch", name, Role::kStorage, dtype};
}

constexpr PickleGlobal dtype(std::string_view name, DType type) {
  return {"torch", name, Role::kDtype, type};
}

constexpr std::array kGlobals{
    PickleGlobal{"collections", "OrderedDict", Role::kOrderedDict},
    PickleGlobal{"collections", "Counter", Role::kCounter},
    PickleGlobal{"torch._utils", "_rebuild_tensor", Role::kRebuildTensor},
    PickleGlobal{"torch._utils", "_rebuild_tensor_v2", Role::kRebuildTensorV2},
    PickleGlobal{"torch._utils", "_rebuild_tensor_v3", Role::kRebuildTensorV3},
    PickleGlobal{"torch._utils", "_rebuild_parameter", Role::kRebuildParameter},
    PickleGlobal{"torch._utils", "_rebuild_parameter_with_state", Role::kRebuildParameterState},
    PickleGlobal{"torch._tensor", "_rebuild_from_type_v2", Role::kRebuildFromType},
    PickleGlobal{"torch.nn.parameter", "Parameter", Role::kTensorType},
    PickleGlobal{"torch", "Tensor", Role::kTensorType},
    PickleGlobal{"torch", "Size", Role::kSize},
    PickleGlobal{"torch", "device", Role::kOther},
    PickleGlobal{"torch.serialization", "_get_layout", Role::kOther},
    PickleGlobal{"_codecs", "encode", Role::kOther},
    PickleGlobal{"builtins", "set", Role::kOther},
    PickleGlobal{"__builtin__", "set", Role::kOther},
    PickleGlobal{"builtins", "bytearray", Role::kOther},
    PickleGlobal{"__builtin__", "bytearray", Role::kOther},
    PickleGlobal{"builtins", "complex", Role::kOther},
    PickleGlobal{"__builtin__", "complex", Role::kOther},
    PickleGlobal{"builtins", "bytes", Role::kOther},
    PickleGlobal{"__builtin__", "bytes", Role::kOther},
    PickleGlobal{"builtins", "frozenset", Role::kOther},
    PickleGlobal{"__builtin__", "frozenset", Role::kOther},
    PickleGlobal{"builtins", "slice", Role::kOther},
    PickleGlobal{"__builtin__", "slice", Role::kOther},
    // What training programs save with a model.
    PickleGlobal{"argparse", "Namespace", Role::kOther},
    PickleGlobal{"types", "SimpleNamespace", Role::kOther},
    PickleGlobal{"pathlib", "PosixPath", Role::kOther},
    PickleGlobal{"datetime", "datetime", Role::kOther},
    PickleGlobal{"datetime", "timedelta", Role::kOther},
    PickleGlobal{"torch.torch_version", "TorchVersion", Role::kOther},
    PickleGlobal{"numpy", "dtype", Role::kOther},
    PickleGlobal{"numpy", "ndarray", Role::kOther},
    PickleGlobal{"numpy.core.multiarray", "scalar", Role::kOther},
    PickleGlobal{"numpy.core.multiarray", "_reconstruct", Role::kOther},
    PickleGlobal{"numpy._core.multiarray", "scalar", Role::kOther},
    PickleGlobal{"numpy._core.multiarray", "_reconstruct", Role::kOther},
    PickleGlobal{"torch.storage", "UntypedStorage", Role::kUntypedStorage},
    storage("FloatStorage", DType::kF32),
    storage("DoubleStorage", DType::kF64),
    storage("HalfStorage", DType::kF16),
    storage("BFloat16Storage", DType::kBF16),
    storage("LongStorage", DType::kI64),
    storage("IntStorage", DType::kI32),
    storage("ShortStorage", DType::kI16),
    storage("CharStorage", DType::kI8),
    storage("ByteStorage", DType::kU8),
    storage("BoolStorage", DType::kBool),
    storage("ComplexFloatStorage", DType::kC64),
    dtype("float32", DType::kF32),
    dtype("float64", DType::kF64),
    dtype("float16", DType::kF16),
    dtype("bfloat16", DType::kBF16),
    dtype("int64", DType::kI64),
    dtype("int32", DType::kI32),
    dtype("int16", DType::kI16),
    dtype("int8", DType::kI8),
    dtype("uint8", DType::kU8),
    dtype("bool", DType::kBool),
    dtype("complex64", DType::kC64),
    dtype("uint16", DType::kU16),
    dtype("uint32", DType::kU32),
    dtype("uint64", DType::kU64),
    dtype("float8_e4m3fn", DType::kF8E4M3),
    dtype("float8_e5m2", DType::kF8E5M2),
    dtype("float8_e4m3fnuz", DType::kF8E4M3Fnuz),
    dtype("float8_e5m2fnuz", DType::kF8E5M2Fnuz),
    dtype("float8_e8m0fnu", DType::kF8E8M0),
    dtype("float4_e2m1fn_x2", DType::kF4),
};

const PickleGlobal* find_by_dtype(PickleRole role, DType type) {
  const auto found = std::ranges::find_if(kGlobals, [&](const PickleGlobal& global) {
    return global.role == role && global.dtype == type;
  });
  return found == kGlobals.end() ? nullptr : &*found;
}

}  // namespace

const PickleGlobal* find_pickle_global(std::string_view module, std::string_view name) {
  // Storages of a GPU are saved by the names of its own classes.
  const std::string_view home = module == "torch.cuda" ? std::string_view("torch") : module;
  const auto found = std::ranges::find_if(kGlobals, [&](const PickleGlobal& global) {
    return global.name == name && global.module == home;
  });
  if (found == kGlobals.end()) return nullptr;
  return home == module || found->role == PickleRole::kStorage ? &*found : nullptr;
}

std::string_view why_refused(std::string_view module, std::string_view name) {
  if (name.starts_with("ComplexDouble") || name == "complex128")
    return "complex numbers of 128 bits are not read";
  if (name.starts_with("Q") || name == "_rebuild_qtensor") return "quantised tensors are not read";
  if (name == "_rebuild_sparse_tensor") return "sparse tensors are not read";
  if (name.starts_with("_rebuild_")) return "this kind of tensor is not read";
  if (module.starts_with("torch.nn.") || module.starts_with("transformers"))
    return "a whole model was saved: save model.state_dict() instead";
  return "it is not data and is never executed. Save only the state dict of a training checkpoint";
}

const PickleGlobal* storage_class_of(DType type) {
  return find_by_dtype(PickleRole::kStorage, type);
}

const PickleGlobal* torch_dtype_of(DType type) { return find_by_dtype(PickleRole::kDtype, type); }

}  // namespace masque::store
