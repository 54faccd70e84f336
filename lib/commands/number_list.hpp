// Several numbers as the value of one option.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace masque::commands {

/// "0.15,0.3": numbers from `least` to `most`. Throws UsageError that begins with `option`.
std::vector<double> parse_numbers(std::string_view option, const std::string& list, double least,
                                  double most);

}  // namespace masque::commands
