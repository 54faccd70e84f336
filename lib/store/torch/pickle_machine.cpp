#include "store/torch/pickle_machine.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/escape.hpp"

namespace masque::store {

namespace {

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

}  // namespace

Checked<Pickle> read_pickle(std::string data, std::uint64_t begin, std::size_t persistent_items,
                            const PickleLimits& limits) {
  return PickleMachine(std::move(data), begin, persistent_items, limits).run();
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

}  // namespace masque::store
