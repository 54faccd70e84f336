// Ways to make a table of positions longer or shorter: one file per way under
// surgery/positions/position_extension/.
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
  /// The fewest and the most positions that it can make from a table of `rows` rows.
  virtual Index fewest(Index rows) const { return rows; }
  virtual Index most(Index /*rows*/) const { return std::numeric_limits<Index>::max(); }
  /// Row `position` of the new table of `length` rows, as a weighted sum of rows of the old table
  /// of `rows` rows.
  virtual TableRows row(Index position, Index rows, Index length) const = 0;
};

/// "truncate", "hierarchical", "hierarchical:0.3". Throws UsageError that names what is possible.
std::unique_ptr<const PositionExtension> parse_position_extension(std::string_view text);

/// A registered way: a row of a list.
struct PositionExtensionInfo {
  std::string_view name;
  std::string_view argument;  ///< its name; empty: takes none
  std::unique_ptr<const PositionExtension> (*make)(std::optional<double> argument);
};

/// All of them, sorted by name.
std::span<const PositionExtensionInfo* const> position_extensions();

/// "hierarchical[:ALPHA], interpolate, …".
std::string position_extension_spellings();

/// Adds a way at program start. `make` throws UsageError for an argument that cannot be.
struct PositionExtensionRegistration {
  explicit PositionExtensionRegistration(const PositionExtensionInfo& info);
};

}  // namespace masque::surgery
