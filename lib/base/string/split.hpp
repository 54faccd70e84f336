// Text cut into parts, which are views into it.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace masque {

/// What most places that read people's text take for blanks.
inline constexpr std::string_view kBlanksOfLine = " \t\r";

/// Returns `text` without the bytes at its begin and end that are among `blanks`.
std::string_view trim(std::string_view text, std::string_view blanks = " ");

/// Returns the parts of `text` between each `separator`, one more than there are separators: "" has
/// one part, an empty one.
std::vector<std::string_view> split(std::string_view text, char separator);

/// Returns the parts of `text` between each `separator` in the same way, but separators within
/// parentheses count for nothing.
std::vector<std::string_view> split_outside_parentheses(std::string_view text, char separator);

/// Returns the parts of `text` that each end with `end`, but perhaps the last, without it: "" has
/// none.
std::vector<std::string_view> split_terminated(std::string_view text, char end);

/// Returns the runs of bytes of `text` that are not among `blanks`; none of them is empty.
std::vector<std::string_view> split_at_blanks(std::string_view text, std::string_view blanks);

/// Returns the parts of `text` before and after `separator`; nothing unless it occurs exactly once.
std::optional<std::pair<std::string_view, std::string_view>> split_in_two(std::string_view text,
                                                                          char separator);

/// NAME or NAME:ARGUMENT: returns the part of `text` before the first `separator`, and after it
/// if there is one.
std::pair<std::string_view, std::optional<std::string_view>> split_at_first(std::string_view text,
                                                                            char separator);
/// Returns the part of `text` before the last `separator`, and after it if there is one.
std::pair<std::string_view, std::optional<std::string_view>> split_at_last(std::string_view text,
                                                                           char separator);

/// Returns `line` without the carriage return that files from Windows have at its end.
inline std::string_view without_return(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

/// Calls use(line) for every line of `text`, without its line feed; the last one may lack it.
template <class Use>
void for_each_line(std::string_view text, const Use& use) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    use(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

}  // namespace masque
