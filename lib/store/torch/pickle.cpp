#include "store/torch/pickle.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "base/checked.hpp"
#include "base/escape.hpp"
#include "base/little_endian.hpp"

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

/// The known name `name` of `module`; nullptr if there is none. Lives for ever. Those of torch.cuda
/// are found as torch's storage classes.
const PickleGlobal* find_pickle_global(std::string_view module, std::string_view name) {
  // Storages of a GPU are saved by the names of its own classes.
  const std::string_view home = module == "torch.cuda" ? std::string_view("torch") : module;
  const auto found = std::ranges::find_if(kGlobals, [&](const PickleGlobal& global) {
    return global.name == name && global.module == home;
  });
  if (found == kGlobals.end()) return nullptr;
  return home == module || found->role == PickleRole::kStorage ? &*found : nullptr;
}

/// Why the name `name` of `module`, which is not known, is refused: static text for users.
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

// The machine: a stack, marks in it, a memo, and the values made so far.

/// Runs one pickle. Its functions return false, and keep the violation, if a rule is broken.
class PickleMachine {
 public:
  /// Of the pickle `data`; `begin`, `persistent_items` and `limits` as for read_pickle.
  PickleMachine(std::string data, std::uint64_t begin, std::size_t persistent_items,
                const PickleLimits& limits)
      : begin_(begin), persistent_items_(persistent_items), limits_(limits) {
    out_.data = std::move(data);
  }

  /// Runs the pickle to its end and returns what it says, or the first broken rule. Called once.
  Checked<Pickle> run();

 private:
  // Opcodes.
  bool start();
  bool step(unsigned char opcode);
  bool step_rare(unsigned char opcode);
  bool refuse(unsigned char opcode);
  bool push_global();
  bool push_long();
  bool push_text(std::uint64_t length);
  bool push_tuple(std::size_t count);
  bool pop_items(std::vector<PickleId>& items);
  bool append(const std::vector<PickleId>& items);
  bool set_items(const std::vector<PickleId>& items);
  bool put(std::uint64_t at);
  bool get(std::uint64_t at);

  // Calls.
  bool reduce();
  bool build();
  bool call(const PickleGlobal& function, PickleId arguments, PickleId& result);
  bool make_dict(const PickleGlobal& function, std::span<const PickleId> arguments,
                 PickleId& result);
  bool make_tensor(const PickleGlobal& function, std::span<const PickleId> arguments,
                   PickleId& result);
  bool read_sizes(PickleId id, Shape& out);
  bool check_total();
  bool check_bounds(PickleTensor& tensor, std::uint64_t bytes);
  bool inner_tensor(std::span<const PickleId> arguments, std::size_t count, PickleId& result);
  bool from_type(std::span<const PickleId> arguments, PickleId& result);
  bool load_storage();
  bool read_view(PickleId view, PickleStorageView& out);

  bool fail(std::string rule, std::string message);

  /// Numbers and ranges of the bytes.
  template <class T>
  bool take(T& value) {
    if (out_.data.size() - at_ < sizeof value) return end_of_data();
    value = load_number<T>(out_.data.data() + at_);
    at_ += sizeof value;
    return true;
  }
  bool end_of_data();

  bool spend(std::uint64_t values);
  /// A new value, not on the stack.
  bool make(PickleValue value, PickleId& id);
  bool make_container(PickleKind kind, std::vector<PickleId> items, PickleId& id);
  bool push(PickleId id);
  bool push_new(PickleKind kind, std::int64_t number = 0);
  bool push_container(PickleKind kind);
  bool pop(PickleId& id);
  bool top(PickleId& id);

  const PickleGlobal* global(PickleId id) const;
  /// True if the value is a number of 0 or more, which goes to `out`.
  bool is_count(PickleId id, std::uint64_t& out) const;

  Pickle out_;
  std::uint64_t begin_;
  std::size_t persistent_items_;
  PickleLimits limits_;
  std::uint64_t at_ = 0;
  std::uint64_t opcode_at_ = 0;
  std::uint64_t spent_ = 0;
  std::uint64_t tensor_bytes_ = 0;  ///< of all tensors, up to kMost
  bool stopped_ = false;
  std::vector<PickleId> stack_;
  std::vector<std::size_t> marks_;
  std::vector<PickleId> memo_;
  std::vector<const PickleGlobal*> globals_;
  std::unordered_map<std::string, std::uint32_t> storage_of_key_;
  Violation broken_;
};

constexpr PickleId kNowhere = std::numeric_limits<PickleId>::max();
constexpr std::size_t kMaxNameBytes = 256;

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    char32_t code_point = 0;
    const int length = decode_utf8(text, code_point);
    if (length == 0) return false;
    text.remove_prefix(static_cast<std::size_t>(length));
  }
  return true;
}

Checked<Pickle> PickleMachine::run() {
  if (!start()) return std::move(broken_);
  while (!stopped_) {
    opcode_at_ = at_;
    unsigned char opcode = 0;
    if (!take(opcode) || !step(opcode)) return std::move(broken_);
  }
  out_.end = at_;
  return std::move(out_);
}

bool PickleMachine::start() {
  unsigned char opcode = 0;
  unsigned char protocol = 0;
  if (out_.data.size() > limits_.bytes) {
    return fail("limit-pickle", fmt::format("a pickle of {} bytes, expected at most {}",
                                            out_.data.size(), limits_.bytes));
  }
  if (!take(opcode) || !take(protocol)) return false;
  if (opcode == 0x80 && protocol >= 2 && protocol <= 5) return true;
  return fail("pickle-protocol", "no pickle of protocol 2, which torch.save writes");
}

// NOLINTNEXTLINE(readability-function-size): one line an opcode
bool PickleMachine::step(unsigned char opcode) {
  PickleId id = 0;
  std::vector<PickleId> items;
  switch (opcode) {
    case '(':
      marks_.push_back(stack_.size());
      if (marks_.size() <= limits_.marks) return true;
      return fail("limit-pickle", fmt::format("more than {} open marks", limits_.marks));
    case 'c': return push_global();
    case 'R':
    case 0x81: return reduce();
    case 'b': return build();
    case 'Q': return load_storage();
    case 'N': return push_new(PickleKind::kNone);
    case 0x88: return push_new(PickleKind::kBool, 1);
    case 0x89: return push_new(PickleKind::kBool, 0);
    case ')': return push_container(PickleKind::kTuple);
    case ']': return push_container(PickleKind::kList);
    case '}': return push_container(PickleKind::kDict);
    case 0x8F: return push_new(PickleKind::kOpaque);  // an empty set
    case 0x85: return push_tuple(1);
    case 0x86: return push_tuple(2);
    case 0x87: return push_tuple(3);
    case 't':
      return pop_items(items) && make_container(PickleKind::kTuple, std::move(items), id) &&
             push(id);
    case 'a': return pop(id) && append({id});
    case 'e': return pop_items(items) && append(items);
    case 's': {
      PickleId key = 0;
      return pop(id) && pop(key) && set_items({key, id});
    }
    case 'u': return pop_items(items) && set_items(items);
    case '0': return pop(id);
    case '.':
      if (stack_.size() != 1 || !marks_.empty())
        return fail("pickle-stack",
                    fmt::format("{} values at the end, expected one", stack_.size()));
      stopped_ = true;
      out_.top = stack_[0];
      return check_total();
    default: return step_rare(opcode);
  }
}

/// Opcodes with an operand.
bool PickleMachine::step_rare(unsigned char opcode) {
  std::uint8_t byte = 0;
  std::uint16_t half = 0;
  std::uint32_t word = 0;
  std::uint64_t bits = 0;
  switch (opcode) {
    case 'q': return take(byte) && put(byte);
    case 'r': return take(word) && put(word);
    case 'h': return take(byte) && get(byte);
    case 'j': return take(word) && get(word);
    case 'K': return take(byte) && push_new(PickleKind::kInt, byte);
    case 'M': return take(half) && push_new(PickleKind::kInt, half);
    case 'J': return take(word) && push_new(PickleKind::kInt, static_cast<std::int32_t>(word));
    case 'G': return take(bits) && push_new(PickleKind::kOpaque);
    case 0x8A: return push_long();
    case 'X': return take(word) && push_text(word);
    case 'U': return take(byte) && push_text(byte);
    case 'T': return take(word) && push_text(word);  // a negative length is longer than any data
    default: return refuse(opcode);
  }
}

bool PickleMachine::refuse(unsigned char opcode) {
  constexpr std::string_view kProtocol4 = "\x8C\x8D\x8E\x90\x91\x92\x93\x94\x95\x96\x97\x98";
  const bool later = kProtocol4.find(static_cast<char>(opcode)) != std::string_view::npos;
  return fail("pickle-opcode",
              fmt::format("opcode 0x{:02x}{}", opcode,
                          later ? " of protocol 4: save again without pickle_protocol"
                                : ", which torch.save does not write"));
}

bool PickleMachine::push_global() {
  std::string_view parts[2];
  for (std::string_view& part : parts) {
    const std::string_view rest = std::string_view(out_.data).substr(at_, kMaxNameBytes + 1);
    const std::size_t length = rest.find('\n');
    if (length == std::string_view::npos && rest.size() <= kMaxNameBytes) return end_of_data();
    part = rest.substr(0, length);
    const bool printable = std::ranges::all_of(part, [](char c) { return c > ' ' && c < '\x7F'; });
    if (length == std::string_view::npos || length == 0 || !printable)
      return fail("pickle-global", "not a name, expected two lines of ASCII");
    at_ += length + 1;
  }
  const PickleGlobal* found = find_pickle_global(parts[0], parts[1]);
  if (found == nullptr) {
    return fail("pickle-global",
                fmt::format("{}.{}: {}", parts[0], parts[1], why_refused(parts[0], parts[1])));
  }
  globals_.push_back(found);
  PickleId id = 0;
  return make({PickleKind::kGlobal, static_cast<std::uint32_t>(globals_.size() - 1)}, id) &&
         push(id);
}

/// A whole number of up to 255 bytes. Longer ones than 64 bits are kept by nobody.
bool PickleMachine::push_long() {
  std::uint8_t size = 0;
  if (!take(size)) return false;
  if (out_.data.size() - at_ < size) return end_of_data();
  std::uint64_t number = 0;
  for (unsigned i = 0; i < std::min<unsigned>(size, 8); ++i) {
    number |= std::uint64_t{static_cast<unsigned char>(out_.data[at_ + i])} << (8 * i);
  }
  if (size > 0 && size < 8 && (static_cast<unsigned char>(out_.data[at_ + size - 1]) & 0x80U) != 0)
    number |= ~std::uint64_t{0} << (8U * size);
  at_ += size;
  if (size > 8) return push_new(PickleKind::kOpaque);
  return push_new(PickleKind::kInt, static_cast<std::int64_t>(number));
}

bool PickleMachine::push_text(std::uint64_t length) {
  if (out_.data.size() - at_ < length) return end_of_data();
  const std::uint64_t from = at_;
  at_ += length;
  if (!is_utf8(std::string_view(out_.data).substr(from, length)))
    return fail("pickle-text", "a text that is not UTF-8");
  PickleId id = 0;
  return make({PickleKind::kText, static_cast<std::uint32_t>(length),
               static_cast<std::int64_t>(from)},
              id) &&
         push(id);
}

bool PickleMachine::push_tuple(std::size_t count) {
  std::vector<PickleId> items(count);
  for (std::size_t i = count; i > 0; --i) {
    if (!pop(items[i - 1])) return false;
  }
  PickleId id = 0;
  return make_container(PickleKind::kTuple, std::move(items), id) && push(id);
}

bool PickleMachine::pop_items(std::vector<PickleId>& items) {
  if (marks_.empty()) return fail("pickle-stack", "no mark where one is needed");
  const auto from = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  items.assign(from, stack_.end());
  stack_.erase(from, stack_.end());
  marks_.pop_back();
  return true;
}

bool PickleMachine::append(const std::vector<PickleId>& items) {
  PickleId list = 0;
  if (!top(list)) return false;
  if (out_.kind(list) != PickleKind::kList) return fail("pickle-type", "items added to no list");
  auto& into = out_.containers[out_.values[list].index];
  into.insert(into.end(), items.begin(), items.end());
  return true;
}

bool PickleMachine::set_items(const std::vector<PickleId>& items) {
  PickleId dict = 0;
  if (!top(dict)) return false;
  if (out_.kind(dict) != PickleKind::kDict) return fail("pickle-type", "items set in no dict");
  if (items.size() % 2 != 0) return fail("pickle-type", "a key without a value");
  auto& into = out_.containers[out_.values[dict].index];
  into.insert(into.end(), items.begin(), items.end());
  return true;
}

bool PickleMachine::put(std::uint64_t at) {
  PickleId id = 0;
  if (!top(id)) return false;
  if (at >= limits_.memo)
    return fail("limit-pickle", fmt::format("memo {}, expected below {}", at, limits_.memo));
  if (at >= memo_.size()) memo_.resize(at + 1, kNowhere);
  memo_[at] = id;
  return true;
}

bool PickleMachine::get(std::uint64_t at) {
  if (at >= memo_.size() || memo_[at] == kNowhere)
    return fail("pickle-memo", fmt::format("memo {} is empty", at));
  return push(memo_[at]);
}

bool PickleMachine::fail(std::string rule, std::string message) {
  broken_ = {std::move(rule), std::move(message), "", begin_ + opcode_at_};
  return false;
}

bool PickleMachine::end_of_data() {
  return fail("pickle-short", "ends inside of a pickle: cut short");
}

bool PickleMachine::spend(std::uint64_t values) {
  if (values <= limits_.values - spent_) {
    spent_ += values;
    return true;
  }
  return fail("limit-pickle", fmt::format("more than {} values", limits_.values));
}

bool PickleMachine::make(PickleValue value, PickleId& id) {
  if (!spend(1)) return false;
  id = static_cast<PickleId>(out_.values.size());
  out_.values.push_back(value);
  return true;
}

bool PickleMachine::make_container(PickleKind kind, std::vector<PickleId> items, PickleId& id) {
  const auto index = static_cast<std::uint32_t>(out_.containers.size());
  out_.containers.push_back(std::move(items));
  return make({kind, index}, id);
}

bool PickleMachine::push(PickleId id) {
  stack_.push_back(id);
  if (stack_.size() <= limits_.stack) return true;
  return fail("limit-pickle", fmt::format("a stack of more than {} values", limits_.stack));
}

bool PickleMachine::push_new(PickleKind kind, std::int64_t number) {
  PickleId id = 0;
  return make({kind, 0, number}, id) && push(id);
}

bool PickleMachine::push_container(PickleKind kind) {
  PickleId id = 0;
  return make_container(kind, {}, id) && push(id);
}

bool PickleMachine::top(PickleId& id) {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back()))
    return fail("pickle-stack", "no value where one is needed");
  id = stack_.back();
  return true;
}

bool PickleMachine::pop(PickleId& id) {
  if (!top(id)) return false;
  stack_.pop_back();
  return true;
}

// What functions give for their arguments, without there being any function.

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

}  // namespace

std::string_view Pickle::text(PickleId id) const {
  return std::string_view(data).substr(static_cast<std::size_t>(values[id].number),
                                       values[id].index);
}

std::span<const PickleId> Pickle::items(PickleId id) const { return containers[values[id].index]; }

const PickleGlobal* storage_class_of(DType type) {
  return find_by_dtype(PickleRole::kStorage, type);
}

const PickleGlobal* torch_dtype_of(DType type) { return find_by_dtype(PickleRole::kDtype, type); }

Checked<Pickle> read_pickle(std::string data, std::uint64_t begin, std::size_t persistent_items,
                            const PickleLimits& limits) {
  return PickleMachine(std::move(data), begin, persistent_items, limits).run();
}

}  // namespace masque::store
