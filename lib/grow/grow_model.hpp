// A larger checkpoint, wider or deeper or both, of a trained model of any family and format.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "grow/depth_rules.hpp"
#include "grow/width_rules.hpp"
#include "store/checkpoint_writer.hpp"

namespace masque::grow {

/// How much larger a model is to become, and by which rules.
struct GrowthRequest {
  double factor = 1;  ///< of hidden size, heads and intermediate size; 1: the width stays
  WidthRule width = WidthRule::kEqual;     ///< how units are copied; used if `factor` > 1
  Index layers = 0;                        ///< of the deeper model, all; 0: the depth stays
  DepthRule depth = DepthRule::kIdentity;  ///< where layers are added; used if `layers` > 0
  /// Standard deviation of normal noise on the matrices of layers that are copies, as a share of
  /// the root mean square of each of their rows. Of a wider model all of them, else those of added
  /// layers.
  double noise = 0;
  std::uint64_t seed = 0;  ///< of width rules that draw, and of noise
};

/// How the larger model's function relates to the small one's.
enum class Sameness {
  kExact,    ///< the same
  kRounded,  ///< but for the rounding of numbers that are stored
  kEpsilon,  ///< but for the epsilon of norms that normalize once more, and rounding
  kOther,    ///< another one
};

/// What a growth changes.
struct GrowthReport {
  model::Design before,                  ///< of the small model
      after;                             ///< of the larger one
  std::uint64_t grown = 0;               ///< tensors with other numbers or another shape
  std::uint64_t added = 0;               ///< tensors of added layers
  std::uint64_t kept = 0;                ///< tensors as they were
  Sameness sameness = Sameness::kExact;  ///< of the two functions, by the strongest change
  bool rounded = false;  ///< numbers that are stored are rounded, besides what `sameness` says
  /// The largest error of rounding to the types of the model's tensors: 6e-8 of f32.
  double unit_roundoff = 0;
  std::vector<std::string> notes;  ///< for people: tensors and files that are left out
};

/// A larger model, planned from the headers of a checkpoint before anything is written: the same
/// names, types and format, with the sizes of config.json as asked. Tensors that no part of the
/// model uses grow where their shape says how (a pooler, a classifier), else they are left out,
/// with a note. For one thread.
class ModelGrowth {
 public:
  /// Reads config and headers of the folder `in` and plans what `request` says. Throws UsageError
  /// and InputError for what cannot grow: as wider_design and deeper_layers, and for a family whose
  /// config.json cannot say the larger design.
  ModelGrowth(const std::string& in, const GrowthRequest& request);
  ~ModelGrowth();

  /// What will be written: a reference into this object.
  const GrowthReport& report() const;

  /// Writes the new folder `out`; returns notes. To be called once. `input` of `options` is set
  /// here. Numbers are computed in double and rounded once. Memory: a few rows for each thread.
  /// Throws as surgery::write_edit; `out` is then as it was.
  std::vector<std::string> write(const std::string& out, store::WriteOptions options);

 private:
  class Plan;
  std::unique_ptr<Plan> plan_;
};

}  // namespace masque::grow
