// How the tensors of a new model start: one table by role, which new checkpoints and training
// share, and what a family has of its own (Family::starts).
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/random/random.hpp"
#include "model/role.hpp"
#include "model/variants.hpp"
#include "store/checkpoint_writer.hpp"

namespace masque::model {

/// The elements of one tensor before training.
struct StartValue {
  /// Where the elements come from.
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

  Kind kind = Kind::kConstant;         ///< which of the fields below count
  double mean = 0;                     ///< for kConstant, kNormal and kTruncatedNormal
  double deviation = 0;                ///< standard deviation, of kNormal and kTruncatedNormal
  double cutoff = 0;                   ///< in standard deviations, of kTruncatedNormal
  std::optional<Index> zero_row = {};  ///< all 0: that of the padding token
  std::vector<double> values = {};     ///< for kGiven, row by row: all elements of the tensor

  /// All elements are `value`.
  static StartValue constant(double value) { return {.mean = value}; }
  /// Elements are normal with mean 0 and the standard deviation `deviation`.
  static StartValue normal(double deviation) {
    return {.kind = Kind::kNormal, .deviation = deviation};
  }
};

/// A tensor that does not start as its role says.
struct StartRule {
  Role role;                        ///< which tensors: all of this role
  StartValue start;                 ///< start value of the weight; biases start as StartValues says
  std::optional<Index> layer = {};  ///< of this layer alone
};

/// The table by role: biases but those of routers, β and ReZero's α are 0; norms (with
/// NormDesign::weight_offset), γ, Admin's ω and NormFormer's numbers of heads are 1; scales of
/// scores start as their normalizer says; talking heads start with the identity where as many come
/// out as go in, else normal with variance 1/inputs; the parameters of position schemes and mixers
/// as these say, the matrices of a latent bottleneck so that numbers of it and states after it have
/// deviation 1, a learned log κ is that of the design; all else is normal with deviation `range`.
class StartValues {
 public:
  /// Start values of the tensors of `design`, of which nothing is borrowed; `range` ≥ 0. Throws
  /// UsageError for a scheme or mixer that is not known.
  StartValues(const Design& design, double range);

  /// The start of the weight of `role`, or with `bias` of its bias; `part` as in TensorRow.
  StartValue of(Role role, bool bias, Index part) const;

 private:
  double range_;
  Index hidden_size_;
  std::vector<nn::PositionParameter> positions_;
  std::vector<nn::MixerParameter> mixers_;
  double score_scale_;
  Index heads_, softmax_heads_, value_heads_;
  double kappa_;
  double weight_offset_;
};

/// Fills `out` with the elements `first` … (row by row) of a tensor of `columns` columns that
/// starts as `start` says. A number depends on `stream` and its place alone. Thread-safe.
void fill_start(const StartValue& start, Index columns, const RandomStream& stream,
                std::uint64_t first, std::span<double> out);
/// The tensor `info` to be written, with the numbers of `start` and `stream`, of which it keeps
/// copies, in its type. They are computed while it is written. Columns are those of the last
/// dimension; a vector has one.
store::OutputTensor started_tensor(store::TensorInfo info, StartValue start,
                                   const RandomStream& stream);

}  // namespace masque::model
