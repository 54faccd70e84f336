#include "base/string/split.hpp"

#include <algorithm>

namespace masque {

namespace {

std::pair<std::string_view, std::optional<std::string_view>> split_at(std::string_view text,
                                                                      std::size_t at) {
  if (at == std::string_view::npos) return {text, std::nullopt};
  return {text.substr(0, at), text.substr(at + 1)};
}

}  // namespace

std::string_view trim(std::string_view text, std::string_view blanks) {
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  // Nothing found is npos, and npos + 1 is 0: nothing is left.
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> split_outside_parentheses(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    if (text[i] != separator || depth != 0) continue;
    parts.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::vector<std::string_view> split_terminated(std::string_view text, char end) {
  if (text.empty()) return {};
  if (text.ends_with(end)) text.remove_suffix(1);
  return split(text, end);
}

std::vector<std::string_view> split_at_blanks(std::string_view text, std::string_view blanks) {
  std::vector<std::string_view> words;
  for (std::size_t begin = text.find_first_not_of(blanks); begin != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(blanks, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(blanks, end);
  }
  return words;
}

std::optional<std::pair<std::string_view, std::string_view>> split_in_two(std::string_view text,
                                                                          char separator) {
  const std::size_t at = text.find(separator);
  if (at == std::string_view::npos || text.find(separator, at + 1) != std::string_view::npos)
    return std::nullopt;
  return std::pair(text.substr(0, at), text.substr(at + 1));
}

std::pair<std::string_view, std::optional<std::string_view>> split_at_first(std::string_view text,
                                                                            char separator) {
  return split_at(text, text.find(separator));
}

std::pair<std::string_view, std::optional<std::string_view>> split_at_last(std::string_view text,
                                                                           char separator) {
  return split_at(text, text.rfind(separator));
}

}  // namespace masque
