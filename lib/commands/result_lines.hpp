// Results that a tool printed as JSON lines, read again to merge them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "probe/statistics/moments.hpp"

namespace masque::commands {

/// Reads members of one line's object, or of one inside it. InputError for what is missing, of
/// another kind, or no finite number. Cheap to copy; `expected` outlives it.
class ResultReader {
 public:
  /// `expected` ends the message about a missing member: "a line that --json printed".
  explicit constexpr ResultReader(std::string_view expected) : expected_(expected) {}

  const JsonValue& member(const JsonValue& root, std::string_view name, JsonKind kind) const;
  const std::string& text(const JsonValue& root, std::string_view name) const;
  double number(const JsonValue& root, std::string_view name) const;
  std::uint64_t count(const JsonValue& root, std::string_view name) const;
  /// `n`, `mean` and `sum_squares`.
  probe::Moments moments(const JsonValue& root) const;

 private:
  std::string_view expected_;
};

/// Calls use(object) for every line of a file that is not empty. InputError "path: line N: …" for
/// what is not JSON and for what `use` throws.
void for_each_result(std::string_view text, const std::string& path,
                     const std::function<void(const JsonValue& root)>& use);

}  // namespace masque::commands
