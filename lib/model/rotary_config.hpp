// Angles of rotary positions as config.json describes them, scalings included.
#pragma once

#include <optional>
#include <span>

#include "model/design.hpp"
#include "model/family_config.hpp"

namespace masque::model {

/// What a family assumes where config.json says nothing, and its own names.
struct RotaryDefaults {
  double theta = 10000;                        ///< base of the angles
  double share = 1;                            ///< share of the head's features that are rotated
  std::string_view theta_name = "rope_theta";  ///< next to the rope parameters
  std::string_view share_name = {};            ///< "rotary_pct"; empty: no such option
  /// Name of the object that is read after rope_scaling.
  std::string_view parameters_name = "rope_parameters";
  /// A JSON object in the place of the parameters, where config.json has none.
  std::string_view parameters = "{}";
  bool fixed_share = false;  ///< a share other than 1 is refused
  /// Class default of original_max_position_embeddings next to the rope parameters; 0: none.
  Index original_length = 0;
  bool always_longrope = false;  ///< types su and yarn mean longrope (Phi-3)
};

/// The rotary angles of `config`, with `defaults` where it says nothing, for heads of `head_size`.
/// Reads rope_scaling or rope_parameters and what stands next to them: types default, linear,
/// dynamic (as at `max_position_embeddings`, which a line in `notes` says), llama3, yarn and
/// longrope, by the formulas of transformers and, as there, in float. The layout is left at
/// RotaryDesign's default. Throws InputError for other types, and unless the number of rotated
/// features is even and at most 8192.
RotaryDesign read_rotary(const FamilyConfig& config, const RotaryDefaults& defaults,
                         Index head_size, Index max_position_embeddings,
                         std::vector<std::string>& notes);

/// A RotaryDesign of plain angles θ_t = theta^(−2t/size), t < size/2, computed in double, of this
/// `layout`: `theta` is the base, `size` the number of rotated features of a head.
RotaryDesign plain_rotary(kernel::RotaryLayout layout, double theta, Index size);

/// The angles of plain_rotary() of `theta` and `size` in the halves' layout, made in float step by
/// step, as transformers makes those of families without options for them.
RotaryDesign float_rotary(double theta, Index size);

/// The base of `frequencies`, if they are plain angles θ_t = base^(−2t/size): a whole number where
/// one will do; any for a single pair, 10000. Nothing where some of them is further off than
/// `tolerance` · θ_t.
std::optional<double> rotary_base(std::span<const double> frequencies, double tolerance);

/// Throws InputError naming the option `name` of `config` unless `size` is even and at most 8192.
void check_rotary_size(const FamilyConfig& config, std::string_view name, Index size);

}  // namespace masque::model
