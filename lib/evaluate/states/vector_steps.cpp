#include "evaluate/states/vector_steps.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/json/json_settings.hpp"
#include "store/checkpoint.hpp"
#include "tensor/convert.hpp"
#include "tensor/matrix.hpp"

namespace masque::evaluate {

namespace {

constexpr std::int64_t kMostNumbers = 1 << 20;

/// The classes of torch that a module may name.
constexpr std::array<std::pair<std::string_view, kernel::Activation>, 9> kTorchActivations{
    {{"Identity", kernel::Activation::kNone},
     {"Tanh", kernel::Activation::kTanh},
     {"ReLU", kernel::Activation::kRelu},
     {"GELU", kernel::Activation::kGelu},
     {"SiLU", kernel::Activation::kSwish},
     {"Sigmoid", kernel::Activation::kSigmoid},
     {"LeakyReLU", kernel::Activation::kLeakyRelu},
     {"Mish", kernel::Activation::kMish},
     {"ReLU6", kernel::Activation::kRelu6}}};

kernel::Activation dense_activation(JsonSettings& settings) {
  constexpr std::string_view kName = "activation_function";
  const std::optional<std::string> given = settings.string(kName);
  if (!given) return kernel::Activation::kTanh;
  const auto found = find_torch_activation(*given);
  if (!found)
    settings.refuse(
        kName, "torch.nn's Identity, Tanh, ReLU, GELU, SiLU, Sigmoid, LeakyReLU, Mish or ReLU6");
  return *found;
}

/// The tensors of a module, each of which has to be used.
class ModuleTensors {
 public:
  explicit ModuleTensors(const std::string& folder) : weights_(store::open_checkpoint(folder)) {}

  /// The numbers of the tensor, which has the `shape`.
  std::vector<double> read(const std::string& name, const std::vector<Index>& shape) {
    const store::TensorInfo& info = weights_.get(name);
    const Shape expected(shape.begin(), shape.end());
    if (info.shape != expected || !is_float(info.dtype)) {
      throw InputError(
          weights_.path(),
          fmt::format("tensor '{}': [{}] of type {}, expected [{}] of a floating-point "
                      "type",
                      name, fmt::join(info.shape, ","), dtype_name(info.dtype),
                      fmt::join(expected, ",")));
    }
    std::vector<std::byte> bytes(info.bytes());
    weights_.read(info, 0, bytes);
    std::vector<double> out(info.elements());
    to_double(info.dtype, bytes, out);
    used_.push_back(name);
    return out;
  }

  void refuse_unused() const {
    for (const store::TensorInfo& info : weights_.tensors()) {
      if (std::ranges::find(used_, info.name) == used_.end()) refuse(info.name);
    }
    for (const store::OpaqueTensor& tensor : weights_.opaque()) refuse(tensor.name);
  }

 private:
  [[noreturn]] void refuse(const std::string& name) const {
    throw InputError(weights_.path(), fmt::format("tensor '{}' is not used", escape(name)));
  }

  store::Checkpoint weights_;
  std::vector<std::string> used_;
};

Index needed_size(JsonSettings& settings, std::string_view name) {
  const auto size = settings.integer(name, 1, kMostNumbers);
  if (!size) throw InputError(settings.path(), fmt::format("no {}, expected a number", name));
  return static_cast<Index>(*size);
}

void add_unknown(const JsonSettings& settings, std::vector<std::string>& unknown) {
  for (const std::string& name : settings.unknown())
    unknown.push_back(fmt::format("{}: not used: {}", escape(settings.path()), escape(name)));
}

/// W x, `sum` added to it if it is not empty.
std::vector<double> dense_product(std::span<const double> weight, std::span<const double> x,
                                  std::vector<double> sum) {
  sum.resize(weight.size() / x.size());
  for (std::size_t i = 0; i < sum.size(); ++i) {
    double product = 0;
    for (std::size_t j = 0; j < x.size(); ++j) product += weight[i * x.size() + j] * x[j];
    sum[i] += product;
  }
  return sum;
}

void apply_how(const NormalizeStep& /*step*/, std::vector<double>& vector) { normalize(vector); }

void apply_how(const DenseStep& step, std::vector<double>& vector) {
  std::vector<double> out = dense_product(step.weight, vector, step.bias);
  kernel::activation_forward(step.activation, MatrixView<double>(out.data(), 1, step.out));
  if (step.adds_input) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += vector[i];
  }
  if (!step.residual.empty()) out = dense_product(step.residual, vector, std::move(out));
  vector = std::move(out);
}

void apply_how(const LayerNormStep& step, std::vector<double>& vector) {
  const auto size = static_cast<double>(vector.size());
  double mean = 0, variance = 0;
  for (const double x : vector) mean += x / size;
  for (const double x : vector) variance += (x - mean) * (x - mean) / size;
  const double scale = 1 / std::sqrt(variance + 1e-5);
  for (std::size_t i = 0; i < vector.size(); ++i)
    vector[i] = (vector[i] - mean) * scale * step.weight[i] + step.bias[i];
}

/// How many numbers a step reads; 0: any.
Index numbers_read(const NormalizeStep& /*step*/) { return 0; }
Index numbers_read(const DenseStep& step) { return step.in; }
Index numbers_read(const LayerNormStep& step) { return std::ssize(step.weight); }

}  // namespace

void normalize(std::vector<double>& vector) {
  double sum = 0;
  for (const double value : vector) sum += value * value;
  const double length = std::max(std::sqrt(sum), 1e-12);
  for (double& value : vector) value /= length;
}

std::optional<kernel::Activation> find_torch_activation(std::string_view name) {
  for (const std::string_view module :
       {"torch.nn.modules.activation.", "torch.nn.modules.linear.", "torch.nn."}) {
    if (!name.starts_with(module)) continue;
    for (const auto& [known, activation] : kTorchActivations) {
      if (name.substr(module.size()) == known) return activation;
    }
  }
  return std::nullopt;
}

VectorStep read_dense(const std::string& path, std::vector<std::string>& unknown) {
  JsonSettings settings = JsonSettings::read(join(path, "config.json"));
  const Index in = needed_size(settings, "in_features");
  const Index out = needed_size(settings, "out_features");
  const bool bias = settings.flag("bias", true);
  const bool residual = settings.flag("use_residual", false);
  settings.need("module_input_name", "sentence_embedding");
  settings.need("module_output_name", "sentence_embedding");
  DenseStep step;
  step.in = in;
  step.out = out;
  step.activation = dense_activation(settings);
  step.adds_input = residual && in == out;
  add_unknown(settings, unknown);
  ModuleTensors tensors(path);
  step.weight = tensors.read("linear.weight", {out, in});
  if (bias) step.bias = tensors.read("linear.bias", {out});
  if (residual && !step.adds_input) step.residual = tensors.read("residual.weight", {out, in});
  tensors.refuse_unused();
  return {path, std::move(step)};
}

VectorStep read_layer_norm(const std::string& path, std::vector<std::string>& unknown) {
  JsonSettings settings = JsonSettings::read(join(path, "config.json"));
  const Index size = needed_size(settings, "dimension");
  add_unknown(settings, unknown);
  ModuleTensors tensors(path);
  LayerNormStep step;
  step.weight = tensors.read("norm.weight", {size});
  step.bias = tensors.read("norm.bias", {size});
  tensors.refuse_unused();
  return {path, std::move(step)};
}

Index size_after(const VectorStep& step, Index size) {
  const Index read = std::visit([](const auto& how) { return numbers_read(how); }, step.how);
  if (read != 0 && read != size) {
    throw InputError(step.path, fmt::format("reads vectors of {} numbers, expected {}: the module "
                                            "before it gives these",
                                            read, size));
  }
  const auto* dense = std::get_if<DenseStep>(&step.how);
  return dense != nullptr ? dense->out : size;
}

void apply_step(const VectorStep& step, std::vector<double>& vector) {
  std::visit([&](const auto& how) { apply_how(how, vector); }, step.how);
}

}  // namespace masque::evaluate
