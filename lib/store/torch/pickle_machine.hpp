// The machine of store/torch/pickle.hpp: a stack, marks in it, a memo, and the values made so far.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "base/little_endian.hpp"
#include "store/torch/pickle.hpp"

namespace masque::store {

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
  // Opcodes: pickle_machine.cpp.
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

  // Calls: pickle_reduce.cpp.
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
  std::uint64_t tensor_bytes_ = 0;  ///< of all tensors, up to kMost of pickle_reduce.cpp
  bool stopped_ = false;
  std::vector<PickleId> stack_;
  std::vector<std::size_t> marks_;
  std::vector<PickleId> memo_;
  std::vector<const PickleGlobal*> globals_;
  std::unordered_map<std::string, std::uint32_t> storage_of_key_;
  Violation broken_;
};

}  // namespace masque::store
