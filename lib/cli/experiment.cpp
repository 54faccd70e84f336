#include "cli/experiment.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file.hpp"

namespace masque::cli {

namespace {

constexpr std::uint64_t kMostBytes = 1 << 20;
constexpr const char* kBlanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

bool is_blank(char c) { return std::string_view(kBlanks).find(c) != std::string_view::npos; }

/// Without its comment.
std::string_view strip_comment(std::string_view line) {
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '#' && (i == 0 || is_blank(line[i - 1]))) return line.substr(0, i);
  }
  return line;
}

}  // namespace

std::vector<Setting> read_settings(const std::string& path) {
  const std::string text = read_text(path, kMostBytes);
  std::vector<Setting> settings;
  std::string_view rest = text;
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
  for (int number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = trimmed(strip_comment(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty()) continue;
    const std::string place = fmt::format("{}:{}", path, number);
    const std::size_t equals = line.find('=');
    const std::string_view key = trimmed(line.substr(0, std::min(equals, line.size())));
    if (equals == std::string_view::npos || key.empty())
      throw InputError(place, fmt::format("found '{}', expected key = value", escape(line)));
    const std::string_view value = trimmed(line.substr(equals + 1));
    if (value.empty())
      throw InputError(place, fmt::format("{}: no value, expected one", escape(key)));
    settings.push_back({std::string(key), std::string(value), place});
  }
  return settings;
}

bool is_setting_value(const std::string& text) {
  return !text.empty() && text.find('\n') == std::string::npos &&
         trimmed(strip_comment(text)) == text;
}

}  // namespace masque::cli
