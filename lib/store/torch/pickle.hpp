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
  std::uint64_t bytes = 64 << 20;
  std::uint64_t values = 8'000'000;  ///< made, and items copied
  std::uint64_t stack = 1'000'000;
  std::uint64_t marks = 1000;
  std::uint64_t memo = 8'000'000;  ///< indices below it
};

/// A value by its number in its pickle. Values may hold each other in circles: nothing follows
/// them but by a fixed number of steps.
using PickleId = std::uint32_t;

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
  PickleKind kind = PickleKind::kNone;
  std::uint32_t index = 0;
  std::int64_t number = 0;  ///< of kBool and kInt
};

/// Where elements are kept, by a key that the file has for it.
struct PickleStorage {
  std::string key;
  std::optional<DType> dtype;  ///< none: bytes
  std::uint64_t numel = 0;

  std::uint64_t element_bytes() const { return dtype ? dtype_bits(*dtype) / 8 : 1; }
  std::uint64_t bytes() const { return numel * element_bytes(); }  ///< below 2^52
};

/// A tensor whose elements were checked to lie inside its storage.
struct PickleTensor {
  std::uint32_t storage = 0;  ///< in Pickle::storages
  DType dtype = DType::kF32;
  std::uint64_t begin = 0;  ///< byte of the storage
  Shape sizes;
  Shape strides;  ///< in elements
};

/// The elements from `first` on of a storage; all of it but in files of before 2018.
struct PickleStorageView {
  std::uint32_t storage = 0;
  std::uint64_t first = 0;
  std::uint64_t numel = 0;
};

/// What a pickle says.
struct Pickle {
  std::string data;  ///< the pickle itself: texts are parts of it
  std::vector<PickleValue> values;
  std::vector<std::vector<PickleId>> containers;  ///< items; of a dict key, value, key, value …
  std::vector<PickleStorage> storages;            ///< each key once
  std::vector<PickleStorageView> views;
  std::vector<PickleTensor> tensors;
  PickleId top = 0;       ///< the whole
  std::uint64_t end = 0;  ///< bytes up to the last opcode

  PickleKind kind(PickleId id) const { return values[id].kind; }
  /// Of a kText.
  std::string_view text(PickleId id) const;
  /// Of a kTuple, kList or kDict.
  std::span<const PickleId> items(PickleId id) const;
  /// Of a kTensor.
  const PickleTensor& tensor(PickleId id) const { return tensors[values[id].index]; }
};

/// Reads the pickle at the start of `data`, which stands at byte `begin` of its file.
/// `persistent_items` is the length of the names of storages: 5 in zip files, 6 in legacy files.
/// The first broken rule is returned; a pickle that goes on after `data` breaks "pickle-short".
/// Time and memory: proportional to the bytes read. No recursion.
Checked<Pickle> read_pickle(std::string data, std::uint64_t begin, std::size_t persistent_items,
                            const PickleLimits& limits = {});

}  // namespace masque::store
