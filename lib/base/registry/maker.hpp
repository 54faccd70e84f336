// Ways to make variants that are spelled with arguments: positions, treatments, tasks.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/registry/registry.hpp"
#include "base/string/edit_distance.hpp"
#include "base/string/named_arguments.hpp"

namespace masque {

/// How a variant of kind T is made: `make` asks the arguments for those that it knows.
template <class T>
struct Maker {
  /// Makes a variant from its arguments. Throws UsageError.
  using Make = std::unique_ptr<T> (*)(NamedArguments& arguments);
  std::string_view name;  ///< what users spell; a view of static text
  Make make;              ///< makes the variant of this name
};

/// Ways to make a T, found by name.
template <class T>
class Makers {
 public:
  Makers() = default;
  /// The ways of `makers`.
  explicit Makers(std::span<const Maker<T>> makers) {
    for (const Maker<T>& maker : makers) add(maker);
  }

  /// Adds the `way`, whose name no other way has: a MASQUE_CHECK.
  void add(const Maker<T>& way) { all_.add(std::make_unique<const Maker<T>>(way)); }

  /// The names of all ways, sorted.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    names.reserve(all_.all().size());
    for (const Maker<T>* maker : all_.all()) names.emplace_back(maker->name);
    return names;
  }

  /// Makes the variant that `arguments` name and describe. Throws UsageError "there is no WHAT 'x',
  /// only a, b; did you mean 'a'?", with `what` for WHAT, or for a wrong or unknown argument.
  std::unique_ptr<T> make(std::string_view what, NamedArguments& arguments) const {
    const Maker<T>* maker = all_.find(arguments.name());
    if (maker == nullptr) {
      std::vector<std::string_view> names;
      for (const Maker<T>* other : all_.all()) names.push_back(other->name);
      throw UsageError(fmt::format("there is no {} '{}', only {}{}", what, escape(arguments.name()),
                                   all_.names(), did_you_mean(arguments.name(), names)));
    }
    std::unique_ptr<T> made = maker->make(arguments);
    arguments.check_all_known();
    return made;
  }

 private:
  Registry<Maker<T>> all_;
};

}  // namespace masque
