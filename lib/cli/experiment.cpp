#include "cli/experiment.hpp"

#include <algorithm>
#include <sstream>
#include <string_view>

#include <boost/program_options/options_description.hpp>
#include <boost/program_options/parsers.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/string/split.hpp"

namespace masque::cli {

namespace {

constexpr std::uint64_t kMostBytes = 1 << 20;

/// Without its comment, and the blanks at its ends.
std::string_view strip_comment(std::string_view line) {
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '#' || (i > 0 && kBlanksOfLine.find(line[i - 1]) == std::string_view::npos))
      continue;
    line = line.substr(0, i);
    break;
  }
  return trim(line, kBlanksOfLine);
}

/// The setting of a line that is not empty. Throws InputError.
Setting read_setting(std::string_view line, const std::string& location) {
  // For Boost every '#' begins a comment. One that stands in a value goes around it: after what is
  // not blank, so that nothing at that end is trimmed.
  const std::size_t sharp = std::min(line.find('#'), line.size());
  const std::string_view head = line.substr(0, sharp);
  if (head.front() == '[' && head.back() == ']') {
    throw InputError(location,
                     fmt::format("found the section '{}', expected key = value: these files "
                                 "have no sections",
                                 escape(head)));
  }
  if (head.find('=') == std::string_view::npos)
    throw InputError(location, fmt::format("found '{}', expected key = value", escape(line)));
  std::istringstream text{std::string(head)};
  const boost::program_options::options_description none;
  const auto parsed = boost::program_options::parse_config_file(text, none, true);
  MASQUE_CHECK(parsed.options.size() == 1);
  const auto& option = parsed.options.front();
  if (option.string_key.empty())
    throw InputError(location, fmt::format("found '{}', expected key = value", escape(line)));
  const std::string value = option.value.at(0) + std::string(line.substr(sharp));
  if (value.empty())
    throw InputError(location,
                     fmt::format("{}: no value, expected one", escape(option.string_key)));
  return {option.string_key, value, location};
}

}  // namespace

std::vector<Setting> read_settings(const std::string& path) {
  const std::string text = read_text(path, kMostBytes);
  std::vector<Setting> settings;
  // A line at a time: Boost does not say where it found something.
  int number = 0;
  for_each_line(text, [&](std::string_view line) {
    ++number;
    line = strip_comment(line);
    if (!line.empty()) settings.push_back(read_setting(line, fmt::format("{}:{}", path, number)));
  });
  return settings;
}

bool is_setting_value(const std::string& text) {
  if (text.empty() || text.find('\n') != std::string::npos) return false;
  const std::string line = "key = " + text;
  return strip_comment(line) == line && read_setting(line, "").value == text;
}

}  // namespace masque::cli
