// config.json as families read it: sizes that are sane, defaults for what is absent, and clear
// words for what masque does not have.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json/json.hpp"
#include "base/types.hpp"
#include "kernel/activation.hpp"
#include "store/config.hpp"

namespace masque::model {

/// Spellings of one option, tried in order.
using Names = std::initializer_list<std::string_view>;

/// A member of a config that no function has asked for.
struct UnusedKey {
  std::string name;  ///< after those of the objects in which it is: "rope_scaling.beta_fast"
  JsonValue value;   ///< anything but null
};

/// A config.json as families read it: an option that is absent or null has the `fallback`. Every
/// function that reads one throws InputError naming file, option and value if that is not what it
/// should be.
class FamilyConfig {
 public:
  /// Reads `config`, of which it keeps a copy.
  explicit FamilyConfig(store::ModelConfig config) : config_(std::move(config)) {}
  /// Reads a `config` whose members are options of a tool: what is wrong is a UsageError about the
  /// option, as `called` names that of a member ("OPTION: found 'x', expected …").
  static FamilyConfig of_options(store::ModelConfig config,
                                 std::function<std::string(std::string_view name)> called);

  /// Names at the top level that no function has asked for, although each is within two edits of
  /// one that was asked for and is not there: the name, and the one that it is near to.
  std::vector<std::pair<std::string, std::string>> misspelt() const;

  /// The members that no function has asked for, in the order of the text, also those of objects
  /// that object() gave; members that are null, which says no more than an absent one, are left
  /// out.
  std::vector<UnusedKey> unused_keys() const;

  /// `config`, another text of the same file: what is asked of the result is asked of this, too.
  FamilyConfig with(store::ModelConfig config) const;

  /// The config itself; valid as long as this object.
  const store::ModelConfig& raw() const { return config_; }

  /// A whole number from 1 to 2^31 − 1, of the first of `names` that is there, else `fallback`.
  /// Throws also if two of `names` are there with different numbers; so do count() and layers().
  Index size(Names names, Index fallback) const;
  /// A whole number from 0 to 2^31 − 1, of the first of `names` that is there, else `fallback`.
  Index count(Names names, Index fallback) const;
  /// Layers, from 1 to 1000, of the first of `names` that is there, else `fallback`.
  Index layers(Names names, Index fallback) const;
  /// The option `name`, a whole number from 0 to 2^31 − 1; nothing if it is absent or −1.
  std::optional<Index> optional_count(std::string_view name) const;
  /// The option `name`, a finite number, else `fallback`.
  double number(std::string_view name, double fallback) const;
  /// The option `name`, a number from 1e-30 to 1e30, else `fallback`, which must be one, too.
  double positive(std::string_view name, double fallback) const;
  /// The option `name`, true or false, else `fallback`.
  bool flag(std::string_view name, bool fallback) const;
  /// The option `name`, a string, else `fallback`.
  std::string text(std::string_view name, std::string_view fallback) const;
  /// The activation that the option `name`, else `fallback`, names (kernel::find_activation).
  kernel::Activation activation(std::string_view name, std::string_view fallback) const;
  /// Whether the option `name` is present and not null.
  bool has(std::string_view name) const {
    ask(name);
    return config_.has(name);
  }
  /// Whether the option `name` is there and null, which some classes tell from an absent one.
  bool is_null(std::string_view name) const;
  /// The numbers of the option `name`, a list; nothing if it is absent or null.
  std::optional<std::vector<double>> numbers(std::string_view name) const;
  /// The object of the option `name` as a config of its own; nothing if it is absent or null.
  std::optional<FamilyConfig> object(std::string_view name) const;

  /// Throws unless the option `name` is absent, null or `value`.
  void expect_flag(std::string_view name, bool value) const;
  /// Throws unless the option `name` is absent, null or `value`.
  void expect_text(std::string_view name, std::string_view value) const;
  /// Throws unless the option `name` is absent, null or `value`.
  void expect_number(std::string_view name, double value) const;

  /// Throws InputError "path: NAME is VALUE, expected …" of the option `name`; `expected` ends it.
  [[noreturn]] void refuse(std::string_view name, std::string_view expected) const;
  /// Throws InputError "path: NAME: PROBLEM" about the option `name`, with this `problem`.
  [[noreturn]] void fail(std::string_view name, std::string_view problem) const;
  /// The option `name` as messages call it.
  std::string called(std::string_view name) const;

 private:
  /// Names that were asked for, and the same of objects inside.
  struct Asked {
    std::set<std::string, std::less<>> names;
    std::map<std::string, std::shared_ptr<Asked>, std::less<>> objects;
  };

  static void add_unused(const JsonValue& object, const Asked& asked, const std::string& before,
                         std::vector<UnusedKey>& unused);
  std::optional<Index> whole(std::string_view name, Index least, Index most) const;
  Index whole(Names names, Index least, Index most, Index fallback) const;
  void ask(std::string_view name) const { asked_->names.emplace(name); }

  store::ModelConfig config_;
  std::function<std::string(std::string_view name)> option_;  ///< empty: of a file
  /// What copies have been asked for, too.
  std::shared_ptr<Asked> asked_ = std::make_shared<Asked>();
};

}  // namespace masque::model
