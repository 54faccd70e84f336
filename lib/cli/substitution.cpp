#include "cli/substitution.hpp"

#include <string_view>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"

namespace masque::cli {

namespace {

// A text is searched as often as it has bytes.
constexpr std::size_t kMostNameBytes = 1024;
constexpr std::size_t kMostResultBytes = 65536;  // $& and the like repeat the name at every match

UsageError wrong(const std::string& word, std::string_view why) {
  return UsageError(fmt::format("'{}': {}", escape(word), why));
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

bool Substitution::is_one(const std::string& word) {
  return word.starts_with("s/") || word.starts_with("s|");
}

Substitution::Substitution(const std::string& word) : word_(word) {
  const char slash = word.at(1);
  const std::size_t middle = word.find(slash, 2);
  const std::size_t end = middle == std::string::npos ? middle : word.find(slash, middle + 1);
  if (middle == 2 || end == std::string::npos || end + 1 != word.size())
    throw wrong(word, "expected s/PATTERN/REPLACEMENT/");
  replacement_ = word.substr(middle + 1, end - middle - 1);
  pattern_.emplace(word.substr(2, middle - 2), RegexDialect::kPerl,
                   [word](const std::string& why) { throw wrong(word, why); });
}

void Substitution::append_replacement(const RegexSearch& found, std::size_t copied,
                                      const std::string& text, std::string& out) const {
  for (std::size_t i = 0; i < replacement_.size(); ++i) {
    const char next = i + 1 < replacement_.size() ? replacement_[i + 1] : '\0';
    if (replacement_[i] != '$') {
      out += replacement_[i];
      continue;
    }
    ++i;
    if (next == '$') {
      out += '$';
    } else if (next == '&') {
      out += *found.group(0);
    } else if (next == '`') {
      out.append(text, copied, found.begin() - copied);
    } else if (next == '\'') {
      out.append(text, found.end());
    } else if (is_digit(next)) {
      auto number = static_cast<std::size_t>(next - '0');
      if (i + 1 < replacement_.size() && is_digit(replacement_[i + 1]))
        number = 10 * number + static_cast<std::size_t>(replacement_[++i] - '0');
      out += found.group(number).value_or("");
    } else {
      out += '$';
      --i;
    }
  }
}

std::optional<std::string> Substitution::apply(const std::string& text) const {
  if (text.size() > kMostNameBytes) {
    throw wrong(word_, fmt::format("a name of {} bytes, expected at most {} for a pattern",
                                   text.size(), kMostNameBytes));
  }
  RegexSearch found(*pattern_, text);
  std::string out;
  std::size_t copied = 0;
  std::size_t from = 0;
  while (from <= text.size() && found.find(from)) {
    out.append(text, copied, found.begin() - copied);
    append_replacement(found, copied, text, out);
    if (out.size() > kMostResultBytes) {
      throw wrong(word_, fmt::format("a name of more than {} bytes, expected a shorter one",
                                     kMostResultBytes));
    }
    copied = found.end();
    from = copied + (found.begin() == copied ? 1 : 0);
  }
  if (from == 0) return std::nullopt;
  return out.append(text, copied);
}

}  // namespace masque::cli
