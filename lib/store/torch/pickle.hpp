// Pickles as data: a machine that makes values of what torch.save writes, and has nothing that
// could be executed.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/violation.hpp"
#include "tensor/dtype.hpp"

namespace masque::store {

// The names that a pickle of torch.save may mention. There is no other way to one of them: a name
// that is not here is refused where it stands.

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

/// The storage class ("FloatStorage") of the element type `dtype`, if it has one; otherwise
/// nullptr.
const PickleGlobal* storage_class_of(DType dtype);

/// torch's name of the element type `dtype` ("float32"); nullptr if it has none.
const PickleGlobal* torch_dtype_of(DType dtype);

// What a pickle says, and limits on it.

/// Limits on what a pickle may make us do.
struct PickleLimits {
  std::uint64_t bytes = 64 << 20;    ///< of the pickle
  std::uint64_t values = 8'000'000;  ///< made, and items copied
  std::uint64_t stack = 1'000'000;   ///< values on the stack at a time
  std::uint64_t marks = 1000;        ///< open at a time
  std::uint64_t memo = 8'000'000;    ///< indices below it
};

/// A value by its number in its pickle. Values may hold each other in circles: nothing follows
/// them but by a fixed number of steps.
using PickleId = std::uint32_t;

/// What a value of a pickle is.
enum class PickleKind : unsigned char {
  kNone,
  kBool,
  kInt,
  kText,
  kTuple,
  kList,
  kDict,
  kGlobal,
  kStorage,
  kTensor,
  kOpaque,  ///< never looked at: numbers with a fraction, sets, bytes, devices
};

/// `index` and `number` say where the rest is: Pickle knows.
struct PickleValue {
  PickleKind kind = PickleKind::kNone;  ///< decides what the others mean
  std::uint32_t index = 0;              ///< in a list of Pickle; of kText: its bytes
  std::int64_t number = 0;              ///< of kBool and kInt; of kText: where it begins
};

/// Where elements are kept, by a key that the file has for it.
struct PickleStorage {
  std::string key;             ///< up to 64 letters, digits, "_", "." and "-"
  std::optional<DType> dtype;  ///< none: bytes
  std::uint64_t numel = 0;     ///< number of elements, at most 2^48

  /// Bytes of an element.
  std::uint64_t element_bytes() const { return dtype ? dtype_bits(*dtype) / 8 : 1; }
  std::uint64_t bytes() const { return numel * element_bytes(); }  ///< below 2^52
};

/// A tensor whose elements were checked to lie inside its storage.
struct PickleTensor {
  std::uint32_t storage = 0;  ///< index in Pickle::storages
  DType dtype = DType::kF32;  ///< type of the elements
  std::uint64_t begin = 0;    ///< byte of the storage
  Shape sizes;                ///< elements in each dimension
  Shape strides;              ///< in elements
};

/// The elements from `first` on of a storage; all of it but in files of before 2018.
struct PickleStorageView {
  std::uint32_t storage = 0;  ///< index in Pickle::storages
  std::uint64_t first = 0;    ///< element
  std::uint64_t numel = 0;    ///< number of elements
};

/// What a pickle says.
struct Pickle {
  std::string data;                               ///< the pickle itself: texts are parts of it
  std::vector<PickleValue> values;                ///< by PickleId
  std::vector<std::vector<PickleId>> containers;  ///< items; of a dict key, value, key, value …
  std::vector<PickleStorage> storages;            ///< each key once
  std::vector<PickleStorageView> views;           ///< those of kStorage values
  std::vector<PickleTensor> tensors;              ///< those of kTensor values
  PickleId top = 0;                               ///< the whole
  std::uint64_t end = 0;                          ///< bytes up to the last opcode

  /// The kind of the value `id`.
  PickleKind kind(PickleId id) const { return values[id].kind; }
  /// The text of the value `id`, a kText: a view of `data`, UTF-8.
  std::string_view text(PickleId id) const;
  /// The items of the value `id`, a kTuple, kList or kDict: a view of `containers`.
  std::span<const PickleId> items(PickleId id) const;
  /// The tensor that the value `id`, a kTensor, is.
  const PickleTensor& tensor(PickleId id) const { return tensors[values[id].index]; }
};

/// Reads the pickle at the start of `data`, which begins at byte `begin` of its file, within
/// `limits`. `persistent_items` is the length of the names of storages: 5 in zip files, 6 in legacy
/// files. The first broken rule is returned; a pickle that goes on after `data` breaks
/// "pickle-short". Time and memory: proportional to the bytes read. No recursion.
Checked<Pickle> read_pickle(std::string data, std::uint64_t begin, std::size_t persistent_items,
                            const PickleLimits& limits = {});

}  // namespace masque::store
