// Several numbers as the value of one option.
#pragma once

#include <string_view>
#include <vector>

namespace masque::commands {

/// Whether a list may have a number twice.
enum class Repeats { kAllowed, kRefused };

/// The numbers of `list`, as "0.15,0.3", in its order: from `least` to `most`, and different if
/// `repeats` is kRefused. Throws UsageError about the field `name`.
std::vector<double> parse_numbers(std::string_view name, std::string_view list, double least,
                                  double most, Repeats repeats = Repeats::kAllowed);

}  // namespace masque::commands
