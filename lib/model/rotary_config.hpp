// Angles of rotary positions as config.json describes them, scalings included.
#pragma once

#include <optional>
#include <span>

#include "model/design.hpp"
#include "model/family_config.hpp"

namespace masque::model {

/// What a family assumes where config.json says nothing, and its own names.
struct RotaryDefaults {
  double theta = 10000;
  double share = 1;                            ///< of the head's features that are rotated
  std::string_view theta_name = "rope_theta";  ///< next to the rope parameters
  std::string_view share_name;                 ///< "rotary_pct"
  std::string_view parameters_name = "rope_parameters";
  bool fixed_share = false;  ///< another share is refused
};

/// Reads rope_scaling or rope_parameters and what stands next to them: types default, linear,
/// dynamic (as at max_position_embeddings, which `notes` says), llama3 and yarn, by the formulas of
/// transformers and, as there, in float. Throws InputError for other types. Head size at most 8192.
RotaryDesign read_rotary(const FamilyConfig& config, const RotaryDefaults& defaults,
                         Index head_size, Index max_position_embeddings,
                         std::vector<std::string>& notes);

/// A RotaryDesign of plain angles.
RotaryDesign plain_rotary(kernel::RotaryLayout layout, double theta, Index size);

/// The base of plain angles θ_t = base^(−2t/size), a whole number where one will do; any for a
/// single pair, 10000. Nothing where some θ_t is further off than `tolerance` · θ_t.
std::optional<double> rotary_base(std::span<const double> frequencies, double tolerance);

/// Throws InputError naming `name` unless the size is even and at most 8192.
void check_rotary_size(const FamilyConfig& config, std::string_view name, Index size);

}  // namespace masque::model
