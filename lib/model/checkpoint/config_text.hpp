// config.json being written.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "base/json_writer.hpp"
#include "model/checkpoint/save.hpp"
#include "model/design.hpp"

namespace masque::model {

/// A JSON object with members in the order of their calls. Numbers are written so that they are
/// read back the same.
class ConfigText {
 public:
  /// Begins the object.
  ConfigText() { json_.begin_object(); }
  ConfigText(const ConfigText&) = delete;
  ConfigText& operator=(const ConfigText&) = delete;

  /// Adds the member `name`; `value` is what JsonWriter writes: nothing becomes null.
  template <class T>
  void member(std::string_view name, const T& value) {
    json_.member(name, value);
  }
  /// Adds the member `name`, of which the value `json` is JSON already.
  void raw_member(std::string_view name, std::string_view json) { json_.raw_member(name, json); }
  /// Adds the member "architectures", a list of the class `name` alone.
  void architecture(std::string_view name) { json_.key("architectures").array(std::array{name}); }

  /// The text, complete: the last call.
  std::string finish() {
    json_.end_object();
    return text_ + "\n";
  }

 private:
  std::string text_;
  JsonWriter json_{text_, JsonLayout::kLines};
};

/// The config.json of the family `masque` for `design`, with what it says of `training` but the
/// begin token; nothing if it has no word for an activation or the positions. Other parts that the
/// family cannot describe are left out: the caller compares what it reads back (config_of).
std::optional<std::string> masque_config(const Design& design, const TrainingConfig& training);

}  // namespace masque::model
