// Variants of a kind by name; most register themselves at program start: formats, families, masks,
// mixers …
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/string/comma_list.hpp"

namespace masque {

/// All items of a kind, sorted by name. An item has a name: a member `name`, a function `name()`,
/// or `info().name`. That of of_process() gets its items before main, from a registration object in
/// the item's file; others are filled by their owner. Items are never removed. Reading is
/// thread-safe after that.
template <class T>
class Registry {
 public:
  /// The registry of this T, made by the first call.
  static Registry& of_process() {
    static Registry all;
    return all;
  }

  /// Adds `item`, which stays where it is and must live as long as the process. A MASQUE_CHECK: no
  /// item has its name.
  void add(const T& item) {
    MASQUE_CHECK(find(name_of(item)) == nullptr);
    const auto before = [](std::string_view name, const T* other) {
      return name < name_of(*other);
    };
    items_.insert(std::upper_bound(items_.begin(), items_.end(), name_of(item), before), &item);
  }
  /// Adds `item` and owns it; otherwise the same.
  void add(std::unique_ptr<const T> item) {
    add(*item);
    owned_.push_back(std::move(item));
  }

  /// All items, sorted by name: a view that is valid until the next add().
  std::span<const T* const> all() const { return items_; }

  /// The item called `name`; nullptr if there is none. Cost O(items).
  const T* find(std::string_view name) const {
    const auto found = std::find_if(items_.begin(), items_.end(),
                                    [&](const T* item) { return name_of(*item) == name; });
    return found == items_.end() ? nullptr : *found;
  }

  /// "bert, gpt2, xlnet": for messages that say what would have been right.
  std::string names() const {
    return comma_list(items_, [](const T* item) { return name_of(*item); });
  }

 private:
  static std::string_view name_of(const T& item) {
    if constexpr (requires { item.info().name; }) {
      return item.info().name;
    } else if constexpr (requires { item.name(); }) {
      return item.name();
    } else {
      return item.name;
    }
  }

  std::vector<const T*> items_;
  std::vector<std::unique_ptr<const T>> owned_;
};

}  // namespace masque
