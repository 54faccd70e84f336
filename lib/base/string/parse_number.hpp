// Numbers that stand in text: one spelling everywhere, whatever the locale.
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>
#include <system_error>

namespace masque {

/// The number at the start of `text`, which is removed from it; nothing, and the text as it was, if
/// there is none or it does not fit T. Whole numbers are decimal; fractions may have an exponent,
/// "inf" and "nan" are numbers of theirs. No blanks and no plus sign in front.
template <class T>
requires std::integral<T> || std::floating_point<T> std::optional<T> take_number(
    std::string_view& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

/// The number that the whole text is, spelled as for take_number; nothing for any other text.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  const std::optional<T> value = take_number<T>(text);
  return text.empty() ? value : std::nullopt;
}

}  // namespace masque
