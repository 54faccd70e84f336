// How the tensors of a new model start: one table by role, which new checkpoints and training
// share, and what a family has of its own (Family::starts).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/random.hpp"
#include "model/role.hpp"
#include "model/variants.hpp"
#include "store/checkpoint_writer.hpp"

namespace masque::model {

/// The elements of one tensor before training.
struct StartValue {
  enum class Kind {
    kConstant,         ///< `mean`
    kNormal,           ///< normal with `mean` and `deviation`
    kTruncatedNormal,  ///< the same, drawn again beyond `cutoff` deviations
    kIdentity,         ///< 1 on the diagonal, else 0
    kGiven,            ///< `values`
    /// Row p of n columns: the sines of p·10000^(−2i/n) for all i, then their cosines: RoFormer.
    kSines,
    kAlternatingSines,  ///< the same numbers as sine, cosine, sine …: DistilBERT
  };

  Kind kind = Kind::kConstant;
  double mean = 0;
  double deviation = 0;
  double cutoff = 0;
  std::optional<Index> zero_row = {};  ///< all 0: that of the padding token
  std::vector<double> values = {};     ///< row by row

  static StartValue constant(double value) { return {.mean = value}; }
  static StartValue normal(double deviation) {
    return {.kind = Kind::kNormal, .deviation = deviation};
  }
};

/// A tensor that does not start as its role says.
struct StartRule {
  Role role;
  StartValue start;  ///< of the weight; biases start at 0 everywhere
};

/// The table by role: biases and β are 0, norms and γ are 1, talking heads start with the
/// identity where as many come out as go in, the parameters of position schemes and mixers as these
/// say, the matrices of a latent bottleneck so that numbers of it and states after it have
/// deviation 1, and all else is normal with deviation `range`.
class StartValues {
 public:
  StartValues(const Design& design, double range);

  /// Of a role's weight, or its bias; `part` as in TensorRow.
  StartValue of(Role role, bool bias, Index part) const;

 private:
  double range_;
  Index hidden_size_;
  std::vector<nn::PositionParameter> positions_;
  std::vector<nn::MixerParameter> mixers_;
  double score_scale_;
  Index heads_, softmax_heads_, value_heads_;
  double kappa_;
};

/// Fills `out` with the elements `first` … of a tensor of `columns` columns. A number depends on
/// the stream and its place alone. Thread-safe.
void fill_start(const StartValue& start, Index columns, const RandomStream& stream,
                std::uint64_t first, std::span<double> out);
/// A tensor of these numbers, in its type, to be written.
store::OutputTensor started_tensor(store::TensorInfo info, StartValue start,
                                   const RandomStream& stream);

}  // namespace masque::model
