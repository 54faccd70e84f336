// Registered ways to make variants that are spelled with arguments: positions, treatments, tasks.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/edit_distance.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/named_arguments.hpp"
#include "base/registry.hpp"

namespace masque {

/// How a variant of kind T is made: `make` asks the arguments for those that it knows.
template <class T>
struct Maker {
  /// Makes a variant from its arguments. Throws UsageError.
  using Make = std::unique_ptr<T> (*)(NamedArguments& arguments);
  std::string_view name;  ///< what users spell; a view of static text
  Make make;              ///< makes the variant of this name
};

/// All ways to make a T, found by name. They are added before main.
template <class T>
class Makers {
 public:
  /// Adds the way `make` under `name`, a view of static text that no other way to make a T has: a
  /// MASQUE_CHECK.
  static void add(std::string_view name, typename Maker<T>::Make make) {
    MASQUE_CHECK(all().find(name) == nullptr);
    all().add(std::make_unique<const Maker<T>>(Maker<T>{name, make}));
  }

  /// The names of all ways, sorted.
  static std::vector<std::string> names() {
    std::vector<std::string> names;
    names.reserve(all().all().size());
    for (const Maker<T>* maker : all().all()) names.emplace_back(maker->name);
    return names;
  }

  /// Makes the variant that `arguments` name and describe. Throws UsageError "there is no WHAT 'x',
  /// only a, b; did you mean 'a'?", with `what` for WHAT, or for a wrong or unknown argument.
  static std::unique_ptr<T> make(std::string_view what, NamedArguments& arguments) {
    const Maker<T>* maker = all().find(arguments.name());
    if (maker == nullptr) {
      std::vector<std::string_view> names;
      for (const Maker<T>* other : all().all()) names.push_back(other->name);
      throw UsageError(fmt::format("there is no {} '{}', only {}{}", what, escape(arguments.name()),
                                   all().names(), did_you_mean(arguments.name(), names)));
    }
    std::unique_ptr<T> made = maker->make(arguments);
    arguments.check_all_known();
    return made;
  }

 private:
  static Registry<Maker<T>>& all() { return Registry<Maker<T>>::of_process(); }
};

}  // namespace masque
