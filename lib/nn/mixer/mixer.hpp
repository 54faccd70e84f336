// Token mixing blocks that stand where attention stands: relatives in one file under nn/mixer/.
//
// y = mix(x) for one sequence. Residual, output projection and the feed-forward layer are the
// model's; norms that belong to the mixing itself are inside.
#pragma once

#include <algorithm>
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
  Index tokens = 0;               ///< n: the longest sequence
  Index hidden_size = 0;          ///< d
  Index num_attention_heads = 1;  ///< h; divides d
  Index inner_size = 0;           ///< hidden units, rank or memories; 0: what the mixer's text says
  Index attention_size = 64;      ///< size of the tiny attention
  Index kernel_size = 7;          ///< taps of a convolution
  Index dilation = 1;             ///< distance between taps
  Index chunk_size = 256;         ///< tokens of a chunk
};

/// A parameter of a mixer, starting as mean + deviation · normal numbers.
struct MixerParameter {
  std::string name;      ///< "value.weight"
  Index rows = 0;        ///< rows of its matrix
  Index columns = 0;     ///< columns of its matrix
  double mean = 0;       ///< mean of the start values
  double deviation = 0;  ///< standard deviation of the start values; 0: constants
  bool trained = true;   ///< false: stays as it starts
};

/// What a mixer says of itself. Texts are of one line.
struct MixerInfo {
  std::string_view name;                  ///< as on the command line
  std::string_view parameters;            ///< with shapes: "value d × d, scores heads n × n"
  MaskSupport masks = MaskSupport::kAny;  ///< masks that it obeys
  bool reads_own = false;    ///< row i reads x_i whatever the mask: by a gate or as a query does
  std::string_view lengths;  ///< what a sequence shorter than n takes
  std::string_view cost;     ///< multiplications: "n² d"
  std::string_view source;   ///< author, year, arXiv number
  /// The sizes that its parameters or its result depend on, besides tokens and hidden_size.
  std::vector<Index MixerShape::*> sizes = {};
};

/// Whether the parameters or the result of the mixer that `info` describes depend on `size`.
inline bool reads_size(const MixerInfo& info, Index MixerShape::*size) {
  return std::ranges::find(info.sizes, size) != info.sizes.end();
}

/// The mixing of one sequence. Views and pointers are borrowed.
template <class T>
struct MixerProblem {
  MixerShape shape;       ///< the same as for parameters()
  MatrixView<const T> x;  ///< (T, d), T ≤ n
  /// As Mixer::parameters lists them, without gaps between rows.
  std::span<const MatrixView<const T>> parameters;
  const mask::BlockMap* blocks = nullptr;  ///< (T × T); nullptr: everything is visible
};

/// Where gradients are added; a view without data is left out.
template <class T>
struct MixerGradients {
  MatrixView<T> x;  ///< (T, d)
  /// As Mixer::parameters lists them, without gaps between rows; or empty.
  std::span<const MatrixView<T>> parameters;
};

/// A way to mix tokens. Stateless, thread-safe.
class Mixer {
 public:
  virtual ~Mixer() = default;
  /// What it is called and what it can; lives as long as the program.
  virtual const MixerInfo& info() const = 0;
  /// The parameters for `shape`, in the order of MixerProblem::parameters. Throws UsageError for a
  /// shape that is not valid.
  virtual std::vector<MixerParameter> parameters(const MixerShape& shape) const = 0;

  /// Sets `y` (T, d), T ≥ 0, to the mixing of `problem`. Hidden pairs have no influence on a row,
  /// bit for bit, as long as what is hidden is finite; a row that sees nothing mixes zeros. Throws
  /// UsageError for a mask that the mixer cannot obey, for more than n tokens and for a shape that
  /// is not valid. Parallel in part, serial inside a parallel region.
  virtual void forward(const MixerProblem<float>& problem, MatrixView<float> y) const = 0;
  /// The same in double: sets `y` to the mixing of `problem`.
  virtual void forward(const MixerProblem<double>& problem, MatrixView<double> y) const = 0;
  /// The same for derivatives by complex step: sets `y` to the mixing of `problem`.
  virtual void forward(const MixerProblem<std::complex<double>>& problem,
                       MatrixView<std::complex<double>> y) const = 0;
  /// From `d_y` (T, d), the gradient by y, adds to `gradients`. Evaluates again what it needs of
  /// the forward pass of `problem`, so that nothing is kept between the two. Throws as forward().
  virtual void backward(const MixerProblem<float>& problem, MatrixView<const float> d_y,
                        const MixerGradients<float>& gradients) const = 0;
  /// The same in double: from `d_y` adds to the `gradients` of `problem`.
  virtual void backward(const MixerProblem<double>& problem, MatrixView<const double> d_y,
                        const MixerGradients<double>& gradients) const = 0;
};

/// All registered mixers, sorted by name.
std::span<const Mixer* const> mixers();
/// The mixer called `name`; nullptr if there is none.
const Mixer* find_mixer(std::string_view name);

/// Adds a mixer at program start.
struct MixerRegistration {
  /// Adds `mixer` to mixers(); its name must be new.
  explicit MixerRegistration(std::unique_ptr<const Mixer> mixer);
};

/// The parameters of `mixer` for `shape` as they start. T is float, double or std::complex<double>;
/// a number is a function of `seed`, mixer, parameter and place alone. Throws as Mixer::parameters.
template <class T>
std::vector<Matrix<T>> start_parameters(const Mixer& mixer, const MixerShape& shape,
                                        std::uint64_t seed);

/// Whether everything is visible in `blocks`: nullptr or all pairs. Cost O(T²).
bool is_full(const mask::BlockMap* blocks);
/// Whether row i of `blocks` sees 0 … i and no others; false for nullptr. Cost O(T²).
bool is_causal(const mask::BlockMap* blocks);

/// Throws UsageError unless the sizes of `shape` are positive (inner_size may be 0)
/// and heads divide the width.
void check_shape(const MixerShape& shape);

/// What `mixer` checks before it runs `problem`: shapes of all views and of `y` or its gradient
/// (MASQUE_CHECK), length and mask (UsageError). Cost O(T²) bits where not every mask is obeyed.
template <class T>
void check_problem(const Mixer& mixer, const MixerProblem<T>& problem, MatrixView<const T> y);

}  // namespace masque::nn
