// The one table of kernels: the tests of values, the tests of gradients and `bench kernels` read
// it, so that nothing is timed that is not tested.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "kernel/activation.hpp"
#include "kernel/norm.hpp"
#include "kernel/number/precision.hpp"
#include "kernel/rotary.hpp"

namespace masque::test {

enum class Operation {
  kLinear,
  kMatmul,
  kMatmulPlain,
  kActivation,
  kGated,
  kNorm,
  kResidualNorm,
  kSoftmax,
  kEmbedding,
  kRotary,
  kLogProbability,
  kDropout,
  kTrainedLinear,
  kVocabularyLoss,
  // From here on nothing is differentiated.
  kExpSum,          ///< of each row: largest + log of the sum
  kPack,            ///< into strips, as a product wants its right operand
  kPackTransposed,  ///< the same of the transposed matrix
  kAdamW,           ///< one step
  kLamb,
};

struct KernelCase {
  std::string name;
  Operation operation;
  Index rows;
  Index columns;     ///< of the result; vocabulary
  Index inputs = 0;  ///< of a product
  kernel::Activation activation = kernel::Activation::kNone;
  kernel::Norm norm = kernel::Norm::kLayer;
  kernel::Precision precision = kernel::Precision::kF32;  ///< of float products
  kernel::RotaryLayout layout = kernel::RotaryLayout::kHalf;
  bool masked = false;   ///< softmax: over about half of the columns, none in row 1
  Index head_size = 12;  ///< rotary: all but the last two features of a head are rotated

  bool has_backward() const {
    return operation != Operation::kLinear && operation != Operation::kLogProbability &&
           operation < Operation::kExpSum;
  }
  /// Floating-point operations; 0 where bytes count.
  double work() const {
    return inputs == 0 ? 0
                       : 2.0 * static_cast<double>(rows) * static_cast<double>(columns) *
                             static_cast<double>(inputs);
  }
};

/// Each layout of rotary positions.
inline void add_rotary_cases(std::vector<KernelCase>& cases, Index rows, Index columns,
                             Index head_size) {
  for (const auto layout : {kernel::RotaryLayout::kHalf, kernel::RotaryLayout::kAdjacent}) {
    KernelCase rotary{layout == kernel::RotaryLayout::kHalf ? "rotary_half" : "rotary_adjacent",
                      Operation::kRotary, rows, columns};
    rotary.layout = layout;
    rotary.head_size = head_size;
    cases.push_back(rotary);
  }
}

/// Small shapes with every option, ragged and aligned.
inline std::vector<KernelCase> small_kernel_cases() {
  using kernel::Activation;
  using O = Operation;
  std::vector<KernelCase> cases;
  for (const auto& [rows, columns, inputs] :
       std::vector<std::array<Index, 3>>{{1, 1, 1}, {3, 5, 7}, {9, 130, 33}, {67, 64, 48}}) {
    cases.push_back({"linear", O::kLinear, rows, columns, inputs});
    cases.push_back({"linear_gelu", O::kLinear, rows, columns, inputs, Activation::kGelu});
    cases.push_back({"linear_bf16", O::kLinear, rows, columns, inputs, Activation::kNone,
                     kernel::Norm::kLayer, kernel::Precision::kBf16});
    cases.push_back({"matmul", O::kMatmul, rows, columns, inputs});
    cases.push_back({"matmul_plain", O::kMatmulPlain, rows, columns, inputs});
    for (const auto operation : {O::kTrainedLinear, O::kVocabularyLoss}) {
      const std::string name =
          operation == O::kTrainedLinear ? "trained_linear" : "vocabulary_loss";
      cases.push_back({name, operation, rows, columns, inputs});
      cases.push_back({name + "_bf16", operation, rows, columns, inputs, Activation::kNone,
                       kernel::Norm::kLayer, kernel::Precision::kBf16});
    }
    cases.push_back({"log_probability", O::kLogProbability, rows, columns, inputs});
  }
  const std::vector<std::pair<std::string, Activation>> activations = {
      {"gelu", Activation::kGelu},
      {"gelu_tanh", Activation::kGeluTanh},
      {"relu", Activation::kRelu},
      {"squared_relu", Activation::kSquaredRelu},
      {"swish", Activation::kSwish},
      {"tanh", Activation::kTanh},
      {"none", Activation::kNone},
      {"sigmoid", Activation::kSigmoid},
      {"quick_gelu", Activation::kQuickGelu},
      {"clipped_gelu", Activation::kClippedGelu},
      {"mish", Activation::kMish},
      {"leaky_relu", Activation::kLeakyRelu},
      {"relu6", Activation::kRelu6},
      {"laplace", Activation::kLaplace},
      {"hardswish", Activation::kHardSwish},
      {"sqrtsoftplus", Activation::kSqrtSoftplus}};
  for (const auto& [name, f] : activations) {
    cases.push_back({name, O::kActivation, 3, 21, 0, f});
    cases.push_back({"gated_" + name, O::kGated, 3, 21, 0, f});
  }
  for (const Index columns : {1, 5, 16, 37}) {
    for (const auto norm : {kernel::Norm::kLayer, kernel::Norm::kRms}) {
      const std::string name = norm == kernel::Norm::kLayer ? "layer_norm" : "rms_norm";
      cases.push_back({name, O::kNorm, 4, columns, 0, Activation::kNone, norm});
      cases.push_back(
          {"residual_" + name, O::kResidualNorm, 4, columns, 0, Activation::kNone, norm});
    }
    cases.push_back({"softmax", O::kSoftmax, 4, columns});
    KernelCase masked{"softmax_masked", O::kSoftmax, 4, columns + 60};
    masked.masked = true;
    cases.push_back(masked);
    cases.push_back({"embedding", O::kEmbedding, 6, columns});
    cases.push_back({"dropout", O::kDropout, 4, columns});
    cases.push_back({"exp_sum", O::kExpSum, 4, columns});
    for (const Index rows : {4, 19}) {
      cases.push_back({"pack", O::kPack, rows, columns});
      cases.push_back({"pack_transposed", O::kPackTransposed, rows, columns});
    }
    cases.push_back({"adamw", O::kAdamW, 4, columns});
    cases.push_back({"lamb", O::kLamb, 4, columns});
  }
  add_rotary_cases(cases, 5, 24, 12);
  add_rotary_cases(cases, 3, 160, 80);
  return cases;
}

/// What one step of training does most: layers of 256 and of 768, and the heads.
inline void add_training_cases(std::vector<KernelCase>& cases) {
  using O = Operation;
  for (const auto precision : {kernel::Precision::kF32, kernel::Precision::kBf16}) {
    const std::string suffix = precision == kernel::Precision::kBf16 ? "_bf16" : "";
    const auto add = [&](const char* name, O operation, Index rows, Index columns, Index inputs) {
      cases.push_back({name + suffix, operation, rows, columns, inputs, kernel::Activation::kNone,
                       kernel::Norm::kLayer, precision});
    };
    add("trained_linear", O::kTrainedLinear, 4096, 256, 256);
    add("trained_linear", O::kTrainedLinear, 4096, 768, 256);
    add("trained_linear", O::kTrainedLinear, 4096, 1024, 256);
    add("trained_linear", O::kTrainedLinear, 4096, 256, 1024);
    add("trained_linear", O::kTrainedLinear, 1024, 768, 768);
    add("trained_linear", O::kTrainedLinear, 1024, 3072, 768);
    add("trained_linear", O::kTrainedLinear, 1024, 768, 3072);
    add("vocabulary_loss", O::kVocabularyLoss, 614, 30522, 256);
    add("vocabulary_loss", O::kVocabularyLoss, 2048, 8192, 256);
    add("vocabulary_loss", O::kVocabularyLoss, 154, 30522, 768);
  }
  for (const Index columns : {256, 1024}) {
    cases.push_back({"gelu", O::kActivation, 4096, columns, 0, kernel::Activation::kGelu});
    cases.push_back({"layer_norm", O::kNorm, 4096, columns});
    cases.push_back({"dropout", O::kDropout, 4096, columns});
    cases.push_back({"embedding", O::kEmbedding, 4096, columns});
    cases.push_back({"softmax", O::kSoftmax, 4096, columns});
    // Tensors of a layer as they are updated.
    cases.push_back({"adamw", O::kAdamW, 1024, columns});
    cases.push_back({"lamb", O::kLamb, 1024, columns});
  }
}

/// What follows products, once for each variant, at 1,024 rows.
inline void add_variant_cases(std::vector<KernelCase>& cases) {
  using kernel::Activation;
  using O = Operation;
  constexpr Index kRows = 1024;
  for (const auto& [name, f] : std::vector<std::pair<std::string, Activation>>{
           {"relu", Activation::kRelu},
           {"squared_relu", Activation::kSquaredRelu},
           {"tanh", Activation::kTanh},
           {"sigmoid", Activation::kSigmoid},
           {"quick_gelu", Activation::kQuickGelu},
           {"clipped_gelu", Activation::kClippedGelu},
           {"mish", Activation::kMish},
           {"leaky_relu", Activation::kLeakyRelu},
           {"relu6", Activation::kRelu6},
           {"laplace", Activation::kLaplace},
           {"hardswish", Activation::kHardSwish},
           {"sqrtsoftplus", Activation::kSqrtSoftplus}}) {
    cases.push_back({name, O::kActivation, kRows, 3072, 0, f});
  }
  cases.push_back({"gated_gelu", O::kGated, kRows, 3072, 0, Activation::kGelu});
  cases.push_back({"rms_norm", O::kNorm, kRows, 768, 0, Activation::kNone, kernel::Norm::kRms});
  cases.push_back({"residual_rms_norm", O::kResidualNorm, kRows, 768, 0, Activation::kNone,
                   kernel::Norm::kRms});
  cases.push_back({"exp_sum", O::kExpSum, 64, 30522});
  for (const Index columns : {64, 768}) {
    cases.push_back({"pack", O::kPack, kRows, columns});
    cases.push_back({"pack_transposed", O::kPackTransposed, kRows, columns});
  }
}

/// Weights of many shapes, few rows and many: for the choice of StripWeights::preferred.
inline void add_shape_cases(std::vector<KernelCase>& cases) {
  const std::vector<std::pair<Index, Index>> shapes = {
      {128, 128},  {256, 256},  {768, 256},   {1024, 256},  {256, 1024}, {512, 512},
      {512, 2048}, {2048, 512}, {1024, 1024}, {4096, 1024}, {1024, 4096}};
  for (const auto& [outputs, inputs] : shapes) {
    for (const Index rows : {1, 16, 128}) {
      cases.push_back({"linear_shape", Operation::kLinear, rows, outputs, inputs});
    }
  }
}

/// The shapes of BERT-base and of its vocabulary, and those of training, as they are timed.
inline std::vector<KernelCase> large_kernel_cases() {
  using kernel::Activation;
  using O = Operation;
  std::vector<KernelCase> cases;
  for (const Index rows : {16, 128, 1024}) {
    for (const auto precision : {kernel::Precision::kF32, kernel::Precision::kBf16}) {
      const std::string suffix = precision == kernel::Precision::kBf16 ? "_bf16" : "";
      const auto add = [&](const char* name, Index columns, Index inputs, Activation f) {
        cases.push_back(
            {name + suffix, O::kLinear, rows, columns, inputs, f, kernel::Norm::kLayer, precision});
      };
      add("linear_qkv", 2304, 768, Activation::kNone);
      add("linear_out", 768, 768, Activation::kNone);
      add("linear_up_gelu", 3072, 768, Activation::kGelu);
      add("linear_down", 768, 3072, Activation::kNone);
    }
    cases.push_back({"gelu", O::kActivation, rows, 3072, 0, Activation::kGelu});
    cases.push_back({"gelu_tanh", O::kActivation, rows, 3072, 0, Activation::kGeluTanh});
    cases.push_back({"swish", O::kActivation, rows, 3072, 0, Activation::kSwish});
    cases.push_back({"gated_swish", O::kGated, rows, 3072, 0, Activation::kSwish});
    cases.push_back({"layer_norm", O::kNorm, rows, 768});
    cases.push_back({"residual_layer_norm", O::kResidualNorm, rows, 768});
    cases.push_back({"softmax", O::kSoftmax, rows, 512});
    KernelCase masked{"softmax_masked", O::kSoftmax, rows, 512};
    masked.masked = true;
    cases.push_back(masked);
    add_rotary_cases(cases, rows, 768, 64);
    cases.push_back({"embedding", O::kEmbedding, rows, 768});
    cases.push_back({"matmul", O::kMatmul, rows, 128, 64});
    cases.push_back({"matmul_plain", O::kMatmulPlain, rows, 64, 128});
  }
  for (const Index rows : {1, 8, 64, 256}) {
    cases.push_back({"log_probability", O::kLogProbability, rows, 30522, 768});
    KernelCase bf16{"log_probability_bf16", O::kLogProbability, rows, 30522, 768};
    bf16.precision = kernel::Precision::kBf16;
    cases.push_back(bf16);
  }
  add_shape_cases(cases);
  add_variant_cases(cases);
  add_training_cases(cases);
  return cases;
}

}  // namespace masque::test
