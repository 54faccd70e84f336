// Tables of expected values next to golden files: tab-separated, '#' starts a comment line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace masque::test {

using Row = std::vector<std::string>;

/// The fields of a line.
Row split(std::string_view line, char separator);

/// The rows of a .tsv file. Throws std::runtime_error if it cannot be read, has no row, or has a
/// row with another number of fields than `columns`.
std::vector<Row> read_table(const std::string& path, std::size_t columns);

}  // namespace masque::test
