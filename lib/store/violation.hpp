// A broken rule of a file format, as a value: readers turn it into an error, `ckpt check` prints
// it.
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "base/types.hpp"

namespace masque::store {

/// The first rule that a file breaks.
struct Violation {
  std::string rule;          ///< stable name: "size-mismatch"
  std::string message;       ///< what was found, what was expected
  std::string tensor = {};   ///< the tensor it is about; may be empty
  std::uint64_t offset = 0;  ///< byte in the file
  std::string file = {};     ///< path of the file; filled in by the reader of the file
};

/// A result, or the rule that made it impossible.
template <class T>
using Checked = std::variant<T, Violation>;

/// The text of `violation`: "rule (tensor 'x', byte 12): message", safe to print.
std::string describe(const Violation& violation);

/// Throws InputError "FILE: RULE (…): MESSAGE" of `violation`, whose file must be set.
[[noreturn]] void throw_violation(const Violation& violation);

/// Returns the result in `checked`; throws a violation as throw_violation.
template <class T>
T value_or_throw(Checked<T> checked) {
  if (const auto* violation = std::get_if<Violation>(&checked)) throw_violation(*violation);
  return std::get<T>(std::move(checked));
}

}  // namespace masque::store
