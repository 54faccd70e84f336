// Ways to make a table of positions longer or shorter.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tensor/table_rows.hpp"

namespace masque::surgery {

/// A way with its argument. Immutable, thread-safe.
class PositionExtension {
 public:
  virtual ~PositionExtension() = default;
  /// One line: what it does, with author, year and identifier where it is published.
  virtual std::string_view about() const = 0;
  /// The fewest positions that it can make from a table of `rows` rows.
  virtual Index fewest(Index rows) const { return rows; }
  /// The most positions that it can make from a table of that many rows.
  virtual Index most(Index /*rows*/) const { return std::numeric_limits<Index>::max(); }
  /// Row `position` of the new table of `length` rows, as a weighted sum of at most three rows of
  /// the old table of `rows` rows. Positions and rows count from 0, without those before the first
  /// position.
  virtual TableRows row(Index position, Index rows, Index length) const = 0;
};

/// The way that `text` names: "truncate", "hierarchical", "hierarchical:0.3". Throws UsageError
/// that names what is possible, and for an argument that is no number or that the way refuses.
std::unique_ptr<const PositionExtension> parse_position_extension(std::string_view text);

/// A way: a row of a list.
struct PositionExtensionInfo {
  std::string_view name;      ///< "hierarchical"
  std::string_view argument;  ///< its name in messages; empty: takes none
  /// Makes the way; `argument` is absent if the user gave none. Throws UsageError for a bad one.
  std::unique_ptr<const PositionExtension> (*make)(std::optional<double> argument);
};

/// All of them, sorted by name.
std::span<const PositionExtensionInfo> position_extensions();

/// "hierarchical[:ALPHA], interpolate, …".
std::string position_extension_spellings();

}  // namespace masque::surgery
