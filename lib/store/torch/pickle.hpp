// Pickles as data: a machine that makes values of what torch.save writes, and has nothing that
// could be executed.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/torch/pickle_globals.hpp"
#include "store/violation.hpp"

namespace masque::store {

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
