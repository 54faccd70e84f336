// Registered ways to make variants that are spelled with arguments: positions, treatments, tasks.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/named_arguments.hpp"
#include "base/registry.hpp"

namespace masque {

/// How a variant of kind T is made: `make` asks the arguments for those that it knows.
template <class T>
struct Maker {
  using Make = std::unique_ptr<T> (*)(NamedArguments& arguments);
  std::string_view name;
  Make make;
};

/// All ways to make a T, found by name. They are added before main.
template <class T>
class Makers {
 public:
  static void add(std::string_view name, typename Maker<T>::Make make) {
    MASQUE_CHECK(all().find(name) == nullptr);
    all().add(std::make_unique<const Maker<T>>(Maker<T>{name, make}));
  }

  /// Sorted.
  static std::vector<std::string> names() {
    std::vector<std::string> names;
    names.reserve(all().all().size());
    for (const Maker<T>* maker : all().all()) names.emplace_back(maker->name);
    return names;
  }

  /// Makes what the arguments say. UsageError "there is no WHAT 'x', only a, b" or of a wrong
  /// argument.
  static std::unique_ptr<T> make(std::string_view what, NamedArguments& arguments) {
    const Maker<T>* maker = all().find(arguments.name());
    if (maker == nullptr) {
      throw UsageError(fmt::format("there is no {} '{}', only {}", what, escape(arguments.name()),
                                   all().names()));
    }
    std::unique_ptr<T> made = maker->make(arguments);
    arguments.check_all_known();
    return made;
  }

 private:
  static Registry<Maker<T>>& all() { return Registry<Maker<T>>::of_process(); }
};

}  // namespace masque
