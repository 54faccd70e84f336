// What option parsing shares: names, and words out of a few.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace masque::cli {

/// "-o,--output" → "--output".
std::string long_name(const std::string& names);

/// "; did you mean 'x'?", or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& candidates);

/// The index of a word. Throws UsageError if it is none.
std::size_t find_word(const std::string& name, const std::vector<std::string>& words,
                      const std::string& text);

}  // namespace masque::cli
