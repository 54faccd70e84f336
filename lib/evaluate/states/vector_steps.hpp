// What modules of sentence-transformers make of a pooled vector: Normalize, Dense, LayerNorm.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/types.hpp"
#include "kernel/activation.hpp"

namespace masque::evaluate {

/// Divides `vector` by its length, or by 1e-12 if that is less.
void normalize(std::vector<double>& vector);

/// normalize().
struct NormalizeStep {};

/// y = f(W x + b), or that plus R x.
struct DenseStep {
  Index in = 0;                                               ///< numbers of x
  Index out = 0;                                              ///< numbers of y
  std::vector<double> weight;                                 ///< W, (out, in)
  std::vector<double> bias;                                   ///< one an output; empty: none
  kernel::Activation activation = kernel::Activation::kNone;  ///< f
  bool adds_input = false;                                    ///< whether R is the identity
  std::vector<double> residual;                               ///< R, (out, in); empty: none
};

/// (x − mean) / √(variance + 1e-5), times the weight, plus the bias.
struct LayerNormStep {
  std::vector<double> weight;  ///< one a number
  std::vector<double> bias;    ///< one a number
};

/// One of these, of a folder.
struct VectorStep {
  std::string path;                                           ///< folder of it, in messages
  std::variant<NormalizeStep, DenseStep, LayerNormStep> how;  ///< what it does
};

/// The activation of the class of torch.nn with the full `name`,
/// "torch.nn.modules.activation.Tanh": Identity, Tanh, ReLU, GELU, SiLU, Sigmoid, LeakyReLU, Mish
/// or ReLU6; nothing for others.
std::optional<kernel::Activation> find_torch_activation(std::string_view name);

/// Reads the Dense in the folder `path`, config.json and weights, and adds to `unknown` the
/// settings in it that nobody understands. Throws InputError for a setting that is not supported,
/// and for a tensor that is missing, has another shape than the settings say, or is not used.
VectorStep read_dense(const std::string& path, std::vector<std::string>& unknown);

/// Reads the LayerNorm in the folder `path` as read_dense does, with the same `unknown`.
VectorStep read_layer_norm(const std::string& path, std::vector<std::string>& unknown);

/// How many numbers `step` makes of `size` numbers. Throws InputError if it reads another number
/// of them.
Index size_after(const VectorStep& step, Index size);

/// Applies `step` to `vector`, whose size it reads.
void apply_step(const VectorStep& step, std::vector<double>& vector);

}  // namespace masque::evaluate
