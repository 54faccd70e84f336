#include "support/table.hpp"

#include <stdexcept>

#include "support/temp_folder.hpp"

namespace masque::test {

Row split(std::string_view line, char separator) {
  Row fields;
  while (true) {
    const std::size_t end = line.find(separator);
    fields.emplace_back(line.substr(0, end));
    if (end == std::string_view::npos) return fields;
    line.remove_prefix(end + 1);
  }
}

std::vector<Row> read_table(const std::string& path, std::size_t columns) {
  const std::string text = read_file(path);
  std::vector<Row> rows;
  for (const std::string& line : split(text, '\n')) {
    if (line.empty() || line[0] == '#') continue;
    rows.push_back(split(line, '\t'));
    if (rows.back().size() != columns) {
      throw std::runtime_error(path + ": wrong number of fields: " + line);
    }
  }
  if (rows.empty()) throw std::runtime_error(path + ": no rows");
  return rows;
}

}  // namespace masque::test
