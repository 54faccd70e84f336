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

/// Members in the order of their calls. Numbers are written so that they are read back the same.
class ConfigText {
 public:
  ConfigText() { json_.begin_object(); }
  ConfigText(const ConfigText&) = delete;
  ConfigText& operator=(const ConfigText&) = delete;

  template <class T>
  void member(std::string_view name, const T& value) {
    json_.member(name, value);
  }
  /// A value that is JSON already.
  void raw_member(std::string_view name, std::string_view json) { json_.raw_member(name, json); }
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

/// The config of the family `masque`; nothing if it has no words for the design.
std::optional<std::string> masque_config(const Design& design, const TrainingConfig& training);

}  // namespace masque::model
