// Rotary positions whose distances are bent beyond a window: what the treatments rerope and
// leaky_rerope share.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/treatment.hpp"

namespace masque::model {

/// What rotary_arguments asks for, as messages say it.
inline constexpr std::string_view kWholeRotary =
    "rotary ones of whole heads, with plain frequencies that are the same in all layers";

/// "layout=half, base=10000": the scheme of nn that turns the features of every head as the design
/// does in all layers. Nothing if none does: a part of the features, scaled frequencies, turned
/// values, another scale of scores than 1/√(head size).
std::optional<std::string> rotary_arguments(TreatedPositions& positions);

/// Takes a scheme that makes the whole score in place of the rotary positions.
void bend_rotary(const std::string& scheme, TreatedPositions& positions);

}  // namespace masque::model
