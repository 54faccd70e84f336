// config.json being written.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/json.hpp"
#include "model/checkpoint/save.hpp"
#include "model/design.hpp"

namespace masque::model {

/// Members in the order of their calls. Numbers are written so that they are read back the same.
class ConfigText {
 public:
  void text(std::string_view name, std::string_view value) { add(name, quote_json(value)); }
  void count(std::string_view name, Index value) { add(name, fmt::format("{}", value)); }
  void number(std::string_view name, double value) { add(name, fmt::format("{}", value)); }
  void flag(std::string_view name, bool value) { add(name, value ? "true" : "false"); }
  void null(std::string_view name) { add(name, "null"); }
  template <class I>
  void optional(std::string_view name, const std::optional<I>& value) {
    value ? count(name, *value) : null(name);
  }
  void architecture(std::string_view name) {
    add("architectures", fmt::format("[{}]", quote_json(name)));
  }

  std::string str() const { return "{\n" + members_ + "\n}\n"; }

 private:
  void add(std::string_view name, std::string_view value) {
    members_ += fmt::format("{}  \"{}\": {}", members_.empty() ? "" : ",\n", name, value);
  }
  std::string members_;
};

/// The config of the family `masque`; nothing if it has no words for the design.
std::optional<std::string> masque_config(const Design& design, const TrainingConfig& training);

}  // namespace masque::model
