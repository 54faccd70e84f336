// What functions give for their arguments, without there being any function.
#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/checked.hpp"
#include "base/escape.hpp"
#include "store/torch/pickle_machine.hpp"

namespace masque::store {

namespace {

using Role = PickleRole;

constexpr std::size_t kMaxRank = 64;
constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 48U;
constexpr std::size_t kMaxKeyBytes = 64;
/// Elements that share their place are distinguished by no memory: so much of them is allowed.
constexpr std::uint64_t kMaxExpandedBytes = 16 << 20;
/// All tensors together hold at most so many bytes, or so many times those of the storages: a small
/// file may not be a large checkpoint. Sums stop at kMost.
constexpr std::uint64_t kMaxTotalBytes = 256 << 20;
constexpr std::uint64_t kMaxTimesStored = 100;
constexpr std::uint64_t kMost = std::uint64_t{1} << 62U;

bool is_key(std::string_view key) {
  const auto allowed = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
           c == '.' || c == '-';
  };
  return !key.empty() && key.size() <= kMaxKeyBytes && std::ranges::all_of(key, allowed);
}

}  // namespace

const PickleGlobal* PickleMachine::global(PickleId id) const {
  return out_.kind(id) == PickleKind::kGlobal ? globals_[out_.values[id].index] : nullptr;
}

bool PickleMachine::is_count(PickleId id, std::uint64_t& out) const {
  const PickleValue& value = out_.values[id];
  if (value.kind != PickleKind::kInt || value.number < 0) return false;
  out = static_cast<std::uint64_t>(value.number);
  return true;
}

/// Both the call of a function and a new object of a class: (function, arguments) → result.
bool PickleMachine::reduce() {
  PickleId arguments = 0;
  PickleId function = 0;
  if (!pop(arguments) || !pop(function)) return false;
  const PickleGlobal* known = global(function);
  if (known == nullptr || out_.kind(arguments) != PickleKind::kTuple)
    return fail("pickle-type", "a call of something that is not a name, or without a tuple");
  PickleId result = 0;
  return call(*known, arguments, result) && push(result);
}

/// Attributes of an object: those of a dict are torch's remarks about versions, which nobody
/// needs.
bool PickleMachine::build() {
  PickleId state = 0;
  PickleId object = 0;
  if (!pop(state) || !top(object)) return false;
  const PickleKind kind = out_.kind(object);
  if (kind == PickleKind::kDict || kind == PickleKind::kOpaque) return true;
  return fail("pickle-type", "attributes set on a value without attributes (torch before 0.4?)");
}

bool PickleMachine::call(const PickleGlobal& function, PickleId arguments_id, PickleId& result) {
  // A copy: the containers move when there is a new one.
  const auto of_tuple = out_.items(arguments_id);
  if (!spend(of_tuple.size())) return false;
  const std::vector<PickleId> arguments(of_tuple.begin(), of_tuple.end());
  switch (function.role) {
    case Role::kOrderedDict:
    case Role::kCounter: return make_dict(function, arguments, result);
    case Role::kRebuildTensor:
    case Role::kRebuildTensorV2:
    case Role::kRebuildTensorV3: return make_tensor(function, arguments, result);
    case Role::kRebuildParameter: return inner_tensor(arguments, 3, result);
    case Role::kRebuildParameterState: return inner_tensor(arguments, 4, result);
    case Role::kRebuildFromType: return from_type(arguments, result);
    case Role::kSize:
      if (arguments.size() != 1 || out_.kind(arguments[0]) != PickleKind::kTuple)
        return fail("pickle-call", "torch.Size of no tuple");
      result = arguments[0];
      return true;
    case Role::kOther: return make({PickleKind::kOpaque}, result);
    default:
      return fail("pickle-call", fmt::format("a call of {}.{}, which is not a function",
                                             function.module, function.name));
  }
}

bool PickleMachine::make_dict(const PickleGlobal& function, std::span<const PickleId> arguments,
                              PickleId& result) {
  const auto wrong = [&] {
    return fail("pickle-call", fmt::format("{} of something else than pairs", function.name));
  };
  std::vector<PickleId> items;
  if (arguments.size() > 1) return wrong();
  if (arguments.size() == 1) {
    const PickleKind kind = out_.kind(arguments[0]);
    const bool is_dict = kind == PickleKind::kDict;
    if (!is_dict && kind != PickleKind::kList) return wrong();
    const auto from = out_.items(arguments[0]);
    if (!spend(2 * from.size())) return false;
    if (is_dict) items.assign(from.begin(), from.end());
    for (std::size_t i = 0; !is_dict && i < from.size(); ++i) {
      const PickleKind pair = out_.kind(from[i]);
      if (pair != PickleKind::kTuple && pair != PickleKind::kList) return wrong();
      const auto two = out_.items(from[i]);
      if (two.size() != 2) return wrong();
      items.insert(items.end(), two.begin(), two.end());
    }
  }
  return make_container(PickleKind::kDict, std::move(items), result);
}

bool PickleMachine::inner_tensor(std::span<const PickleId> arguments, std::size_t count,
                                 PickleId& result) {
  if (arguments.size() != count || out_.kind(arguments[0]) != PickleKind::kTensor)
    return fail("pickle-call", "a parameter of no tensor");
  result = arguments[0];
  return true;
}

bool PickleMachine::from_type(std::span<const PickleId> arguments, PickleId& result) {
  const PickleGlobal* function = arguments.size() == 4 ? global(arguments[0]) : nullptr;
  const PickleGlobal* type = arguments.size() == 4 ? global(arguments[1]) : nullptr;
  if (function == nullptr || type == nullptr || type->role != Role::kTensorType ||
      out_.kind(arguments[2]) != PickleKind::kTuple || function->role == Role::kRebuildFromType)
    return fail("pickle-call", "_rebuild_from_type_v2 of no tensor");
  if (!call(*function, arguments[2], result)) return false;
  if (out_.kind(result) == PickleKind::kTensor) return true;
  return fail("pickle-call", "_rebuild_from_type_v2 of no tensor");
}

bool PickleMachine::make_tensor(const PickleGlobal& function, std::span<const PickleId> arguments,
                                PickleId& result) {
  const auto wrong = [&](std::string_view what) {
    return fail("pickle-tensor", fmt::format("{}: {}", function.name, what));
  };
  const std::size_t least = function.role == Role::kRebuildTensor     ? 4
                            : function.role == Role::kRebuildTensorV2 ? 6
                                                                      : 7;
  const bool has_metadata = least > 4 && arguments.size() == least + 1;
  if (arguments.size() != least && !has_metadata) return wrong("another number of arguments");
  if (out_.kind(arguments[0]) != PickleKind::kStorage) return wrong("no storage");
  const PickleStorageView& view = out_.views[out_.values[arguments[0]].index];
  const PickleStorage& storage = out_.storages[view.storage];
  PickleTensor tensor{view.storage, storage.dtype.value_or(DType::kU8), 0, {}, {}};
  if (least == 7) {
    const PickleGlobal* dtype = global(arguments[6]);
    if (dtype == nullptr || dtype->role != Role::kDtype) return wrong("no dtype");
    tensor.dtype = *dtype->dtype;
  }
  // Views by which numbers change their sign: {"conj": True}, {"neg": True}.
  const PickleId metadata = has_metadata ? arguments.back() : arguments[0];
  if (has_metadata && out_.kind(metadata) != PickleKind::kNone &&
      (out_.kind(metadata) != PickleKind::kDict || !out_.items(metadata).empty()))
    return wrong("a conjugated or negated view: save tensor.resolve_conj().resolve_neg()");
  std::uint64_t offset = 0;
  if (!is_count(arguments[1], offset) || offset > kMaxElements) return wrong("no offset");
  if (!read_sizes(arguments[2], tensor.sizes) || !read_sizes(arguments[3], tensor.strides))
    return false;
  if (tensor.sizes.size() != tensor.strides.size()) return wrong("sizes and strides differ");
  const std::uint64_t element = std::max(dtype_bits(tensor.dtype), 8U) / 8;
  tensor.begin = view.first * storage.element_bytes() + offset * element;  // below 2^52 each
  if (!check_bounds(tensor, (view.first + view.numel) * storage.element_bytes())) return false;
  out_.tensors.push_back(std::move(tensor));
  return make({PickleKind::kTensor, static_cast<std::uint32_t>(out_.tensors.size() - 1)}, result);
}

bool PickleMachine::read_sizes(PickleId id, Shape& out) {
  if (out_.kind(id) != PickleKind::kTuple)
    return fail("pickle-tensor", "sizes that are not a tuple");
  const auto items = out_.items(id);
  if (items.size() > kMaxRank) {
    return fail("limit-rank",
                fmt::format("{} dimensions, expected at most {}", items.size(), kMaxRank));
  }
  if (!spend(items.size())) return false;
  out.resize(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!is_count(items[i], out[i]))
      return fail("pickle-tensor", "a size or a stride that is not a number from 0");
  }
  return true;
}

/// Every element lies before byte `bytes` of its storage.
bool PickleMachine::check_bounds(PickleTensor& tensor, std::uint64_t bytes) {
  const std::uint64_t element = std::max(dtype_bits(tensor.dtype), 8U) / 8;
  const auto elements = element_count(tensor.sizes);
  const auto size = elements ? checked_multiply(*elements, element) : std::nullopt;
  if (!size) return fail("shape-overflow", "more than 2^64 bytes: " + shape_text(tensor.sizes));
  if (*elements == 0) {
    tensor.begin = 0;  // of nothing; may be anywhere
    return true;
  }
  std::uint64_t last = 0;  // saturated: no storage has so many
  for (std::size_t i = 0; i < tensor.sizes.size(); ++i) {
    const auto step = checked_multiply(tensor.sizes[i] - 1, tensor.strides[i]);
    last = step && *step <= kMaxElements ? std::min(last + *step, kMaxElements) : kMaxElements;
  }
  if (last == kMaxElements || tensor.begin + (last + 1) * element > bytes) {
    return fail("pickle-bounds", fmt::format("sizes {} and strides {} reach beyond their storage",
                                             shape_text(tensor.sizes), shape_text(tensor.strides)));
  }
  if (*size > std::max(bytes, kMaxExpandedBytes)) {
    return fail("limit-expanded",
                fmt::format("{} bytes of a storage of {}: save tensor.clone()", *size, bytes));
  }
  tensor_bytes_ = std::min(tensor_bytes_ + std::min(*size, kMost), kMost);
  return true;
}

bool PickleMachine::check_total() {
  std::uint64_t stored = 0;
  for (const PickleStorage& storage : out_.storages)
    stored = std::min(stored + storage.bytes(), kMost);
  if (tensor_bytes_ <= kMaxTotalBytes || tensor_bytes_ / kMaxTimesStored <= stored) return true;
  return fail(
      "limit-expanded",
      fmt::format("tensors of {} bytes in storages of {}, expected at most {} times as many",
                  tensor_bytes_, stored, kMaxTimesStored));
}

/// The name of a storage becomes the storage.
bool PickleMachine::load_storage() {
  const auto wrong = [&](std::string_view what) {
    return fail("pickle-storage", fmt::format("the name of a storage: {}", what));
  };
  PickleId id = 0;
  if (!pop(id)) return false;
  if (out_.kind(id) != PickleKind::kTuple) return wrong("no tuple");
  const auto items = out_.items(id);
  if (items.size() != persistent_items_)
    return wrong(fmt::format("{} items, expected {}", items.size(), persistent_items_));
  const auto text = [&](std::size_t i) {
    return out_.kind(items[i]) == PickleKind::kText ? out_.text(items[i]) : std::string_view();
  };
  const PickleGlobal* type = global(items[1]);
  PickleStorage storage{std::string(text(2)), std::nullopt, 0};
  if (text(0) != "storage") return wrong("not called storage");
  if (type == nullptr || (type->role != Role::kStorage && type->role != Role::kUntypedStorage))
    return wrong("no storage class");
  if (!is_key(storage.key)) return wrong("a key of other characters than letters and digits");
  if (!is_count(items[4], storage.numel) || storage.numel > kMaxElements)
    return wrong("no number of elements");
  storage.dtype = type->dtype;
  PickleStorageView view{0, 0, storage.numel};
  if (items.size() > 5 && !read_view(items[5], view)) return false;
  const auto [at, added] =
      storage_of_key_.emplace(storage.key, static_cast<std::uint32_t>(out_.storages.size()));
  view.storage = at->second;
  if (added) {
    out_.storages.push_back(std::move(storage));
  } else if (const PickleStorage& before = out_.storages[at->second];
             before.dtype != storage.dtype || before.numel != storage.numel) {
    return wrong(fmt::format("key {} with two types or sizes", storage.key));
  }
  out_.views.push_back(view);
  PickleId made = 0;
  return make({PickleKind::kStorage, static_cast<std::uint32_t>(out_.views.size() - 1)}, made) &&
         push(made);
}

/// (key, offset, size) of a part of a storage, in elements; None: all of it.
bool PickleMachine::read_view(PickleId id, PickleStorageView& out) {
  if (out_.kind(id) == PickleKind::kNone) return true;
  const std::uint64_t all = out.numel;
  const bool is_tuple = out_.kind(id) == PickleKind::kTuple;
  const auto items = is_tuple ? out_.items(id) : std::span<const PickleId>();
  if (items.size() != 3 || !is_count(items[1], out.first) || !is_count(items[2], out.numel) ||
      out.first > all || out.numel > all - out.first)
    return fail("pickle-storage", "a view outside of its storage");
  return true;
}

}  // namespace masque::store
