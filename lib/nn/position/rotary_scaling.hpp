// Rotary positions for texts that are longer than those of training: one table of methods, of which
// the schemes rope, rope_pi, … and the treatments of loaded models are made.
#pragma once

#include <span>
#include <string_view>

namespace masque {
class NamedArguments;
}

namespace masque::nn {

/// What methods ask for, each some of it.
struct RotaryArguments {
  double factor = 8;     ///< how many times longer texts are than those of training
  double length = 512;   ///< length of the texts of training
  double power = 0.625;  ///< exponent of the number of a pair, t + 1
  /// Rotations within `length`: pairs that rotate more often keep their frequency.
  double beta_fast = 32;
  /// Pairs that rotate less often are divided by `factor`; at most beta_fast.
  double beta_slow = 1;
};

/// An argument that a method asks for, and its range. RotaryArguments has the standard value.
struct RotaryParameter {
  std::string_view name;                       ///< as in `rope_yarn(factor=8)`
  double RotaryArguments::*value;              ///< where it is kept
  double least;                                ///< smallest possible value
  double most;                                 ///< largest possible value
  double RotaryArguments::*at_most = nullptr;  ///< another one, read earlier; null: `most`

  /// Sets the member of `to` to the value in `arguments`, or to the standard value. Throws
  /// UsageError for a value out of its range.
  void read(NamedArguments& arguments, RotaryArguments& to) const;
};

/// A method: what it does to plain rotary positions.
struct RotaryScaling {
  std::string_view name;                             ///< name of the scheme: "rope_ntk"
  std::string_view effect;                           ///< in a few words
  std::string_view source;                           ///< author, year, identifier
  std::span<const RotaryParameter> parameters = {};  ///< what it asks for
  /// Changes the frequencies θ_t in place.
  void (*scale)(const RotaryArguments&, std::span<double> frequencies) = [](const RotaryArguments&,
                                                                            std::span<double>) {};
  /// Factor of cosine and sine, for queries and for keys: scores grow by its square.
  double (*amplitude)(const RotaryArguments&) = [](const RotaryArguments&) { return 1.0; };

  /// "ntk" of "rope_ntk"; empty: plain `rope`.
  std::string_view method() const;
};

/// All methods; `rope` is the first.
std::span<const RotaryScaling> rotary_scalings();
/// The method of the scheme called `name`, which must exist (MASQUE_CHECK).
const RotaryScaling& rotary_scaling(std::string_view name);

}  // namespace masque::nn
