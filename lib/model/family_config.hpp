// config.json as families read it: sizes that are sane, defaults for what is absent, and clear
// words for what masque does not have.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "base/types.hpp"
#include "kernel/activation.hpp"
#include "store/config.hpp"

namespace masque::model {

/// Spellings of one option, tried in order.
using Names = std::initializer_list<std::string_view>;

/// Every function throws InputError naming file, option and value if that is not what it should be.
class FamilyConfig {
 public:
  explicit FamilyConfig(store::ModelConfig config) : config_(std::move(config)) {}

  const store::ModelConfig& raw() const { return config_; }

  /// A whole number from 1 to 2^31 − 1.
  Index size(Names names, Index fallback) const;
  /// A whole number from 0 to 2^31 − 1.
  Index count(Names names, Index fallback) const;
  /// Layers, from 1 to 1000.
  Index layers(Names names, Index fallback) const;
  /// A whole number ≥ 0 that may be absent.
  std::optional<Index> optional_count(std::string_view name) const;
  /// A finite number.
  double number(std::string_view name, double fallback) const;
  /// A number from 1e-30 to 1e30.
  double positive(std::string_view name, double fallback) const;
  bool flag(std::string_view name, bool fallback) const;
  std::string text(std::string_view name, std::string_view fallback) const;
  kernel::Activation activation(std::string_view name, std::string_view fallback) const;
  bool has(std::string_view name) const { return config_.has(name); }
  std::optional<FamilyConfig> object(std::string_view name) const;

  /// Throws unless the option is absent, null or this value.
  void expect_flag(std::string_view name, bool value) const;
  void expect_text(std::string_view name, std::string_view value) const;
  void expect_number(std::string_view name, double value) const;

  /// "path: NAME is VALUE, expected …".
  [[noreturn]] void refuse(std::string_view name, std::string_view expected) const;

 private:
  std::optional<Index> whole(std::string_view name, Index least, Index most) const;
  Index whole(Names names, Index least, Index most, Index fallback) const;
  store::ModelConfig config_;
};

}  // namespace masque::model
