// Rotary positions whose distances are bent beyond a window: what the treatments rerope and
// leaky_rerope share.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/treatment.hpp"

namespace masque::model {

/// What rotary_arguments asks for, as messages say it.
inline constexpr std::string_view kPlainRotary =
    "rotary ones with plain frequencies that are the same in all layers, of queries and keys";

/// "layout=half, base=10000, size=64": the schemes of nn that turn features of every head as the
/// design does in all layers. Nothing if none does: scaled frequencies, rotated values, another
/// scale of scores than 1/√(head size).
std::optional<std::string> rotary_arguments(TreatedPositions& positions);

/// Takes a scheme that makes the whole score in place of the rotary positions.
void replace_rotary_with_rerope(const std::string& scheme, TreatedPositions& positions);

}  // namespace masque::model
