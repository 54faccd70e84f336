// Token mixing blocks that stand where attention stands: one file per mixer under nn/mixer/.
//
// y = mix(x) for one sequence. Residual, output projection and the feed-forward layer are the
// model's; norms that belong to the mixing itself are inside.
#pragma once

#include <complex>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mask/block_map.hpp"
#include "nn/variant.hpp"
#include "tensor/matrix.hpp"

namespace masque::nn {

/// Sizes of a mixer. A mixer reads the fields that its description names, no others.
struct MixerShape {
  Index tokens = 0;       ///< n: the longest sequence
  Index hidden_size = 0;  ///< d
  Index num_attention_heads = 1;
  Index inner_size = 0;       ///< hidden units, rank or memories; 0: what the mixer's text says
  Index attention_size = 64;  ///< of the tiny attention
  Index kernel_size = 7;      ///< taps of a convolution
  Index dilation = 1;         ///< distance between taps
  Index chunk_size = 256;     ///< tokens of a chunk
};

/// A parameter of a mixer, starting as mean + deviation · normal numbers.
struct MixerParameter {
  std::string name;
  Index rows = 0;
  Index columns = 0;
  double mean = 0;
  double deviation = 0;
  bool trained = true;  ///< false: stays as it starts
};

/// What a mixer says of itself. Texts are of one line.
struct MixerInfo {
  std::string_view name;        ///< as on the command line
  std::string_view parameters;  ///< with shapes: "value d × d, scores heads n × n"
  MaskSupport masks = MaskSupport::kAny;
  bool reads_own = false;    ///< row i reads x_i whatever the mask: by a gate or as a query does
  std::string_view lengths;  ///< what a sequence shorter than n takes
  std::string_view cost;     ///< multiplications: "n² d"
  std::string_view source;   ///< author, year, arXiv number
};

/// The mixing of one sequence. Views and pointers are borrowed.
template <class T>
struct MixerProblem {
  MixerShape shape;
  MatrixView<const T> x;  ///< (T, d), T ≤ n
  /// As Mixer::parameters lists them, without gaps between rows.
  std::span<const MatrixView<const T>> parameters;
  const mask::BlockMap* blocks = nullptr;  ///< (T × T); nullptr: everything is visible
};

/// Where gradients are added; a view without data is left out.
template <class T>
struct MixerGradients {
  MatrixView<T> x;
  /// As Mixer::parameters lists them, without gaps between rows; or empty.
  std::span<const MatrixView<T>> parameters;
};

/// A way to mix tokens. Stateless, thread-safe.
///
/// forward   y (T, d), T ≥ 0. Hidden pairs have no influence on a row, bit for bit, as long as what
///           is hidden is finite; a row that sees nothing mixes zeros.
/// backward  d_y (T, d). Evaluates again what it needs of the forward pass, so that nothing is kept
///           between the two.
///
/// Both throw UsageError for a mask that the mixer cannot obey, for more than n tokens and for a
/// shape that is none. Parallel in part, serial inside a parallel region.
class Mixer {
 public:
  virtual ~Mixer() = default;
  virtual const MixerInfo& info() const = 0;
  /// The parameters for a shape. Throws UsageError for a shape that is none.
  virtual std::vector<MixerParameter> parameters(const MixerShape& shape) const = 0;

  virtual void forward(const MixerProblem<float>& problem, MatrixView<float> y) const = 0;
  virtual void forward(const MixerProblem<double>& problem, MatrixView<double> y) const = 0;
  virtual void forward(const MixerProblem<std::complex<double>>& problem,
                       MatrixView<std::complex<double>> y) const = 0;
  virtual void backward(const MixerProblem<float>& problem, MatrixView<const float> d_y,
                        const MixerGradients<float>& gradients) const = 0;
  virtual void backward(const MixerProblem<double>& problem, MatrixView<const double> d_y,
                        const MixerGradients<double>& gradients) const = 0;
};

/// All registered mixers, sorted by name.
std::span<const Mixer* const> mixers();
/// nullptr if there is none of this name.
const Mixer* find_mixer(std::string_view name);

/// Adds one at program start.
struct MixerRegistration {
  explicit MixerRegistration(std::unique_ptr<const Mixer> mixer);
};

/// The parameters of a mixer as they start. T is float, double or std::complex<double>; a number is
/// a function of seed, mixer, parameter and place alone. Throws as Mixer::parameters.
template <class T>
std::vector<Matrix<T>> start_parameters(const Mixer& mixer, const MixerShape& shape,
                                        std::uint64_t seed);

/// Whether everything is visible: nullptr or all pairs. Cost O(T²).
bool is_full(const mask::BlockMap* blocks);
/// Whether row i sees 0 … i and no others. Cost O(T²).
bool is_causal(const mask::BlockMap* blocks);

/// Throws UsageError unless sizes are positive and heads divide the width.
void check_shape(const MixerShape& shape);

/// What every mixer checks before it runs: shapes of all views (MASQUE_CHECK), length and mask
/// (UsageError). Cost O(T²) bits where not every mask is obeyed.
template <class T>
void check_problem(const Mixer& mixer, const MixerProblem<T>& problem, MatrixView<const T> y);

}  // namespace masque::nn
