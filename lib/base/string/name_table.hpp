// Names of a type's values, as people and files spell them.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace masque {

/// Values with their names, in the order in which they are shown. What it points to stays.
template <class T>
using NameTable = std::span<const std::pair<std::string_view, T>>;

/// Returns the name of `value` in `table`, which must have it: a MASQUE_CHECK. The first of
/// several.
template <class T>
std::string_view name_in(NameTable<T> table, T value) {
  const auto found = std::ranges::find(table, value, &std::pair<std::string_view, T>::second);
  MASQUE_CHECK(found != table.end());
  return found->first;
}

/// Throws UsageError "FIELD: found 'x', expected a, b or c" about the field `field_name` with the
/// text `found` and the possible `names`, and a suggestion where one of them is near.
[[noreturn]] void refuse_name(std::string_view field_name, std::string_view found,
                              std::span<const std::string_view> names);

/// Returns the value of `name` in `table`. Throws as refuse_name, about `field_name`.
template <class T>
const T& named_value(std::string_view field_name, std::string_view name, NameTable<T> table) {
  const auto found = std::ranges::find(table, name, &std::pair<std::string_view, T>::first);
  if (found != table.end()) return found->second;
  std::vector<std::string_view> names;
  for (const auto& [known, value] : table) names.push_back(known);
  refuse_name(field_name, name, names);
}

/// Returns the values of `names` in `table`, in their order. Throws as refuse_name, about
/// `field_name`.
template <class T>
std::vector<T> named_values(std::string_view field_name, std::span<const std::string_view> names,
                            NameTable<T> table) {
  std::vector<T> values;
  values.reserve(names.size());
  for (const std::string_view name : names) values.push_back(named_value(field_name, name, table));
  return values;
}

}  // namespace masque
