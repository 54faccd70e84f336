// squared_relu_paper: a_ij = max(q_i·k_j / n_i, 0)², as the code in the appendix of the paper has
// it: 1/n² in all, and no 1/√d. Position terms, too, are divided by n_i.
#include <algorithm>

#include "nn/normalizer.hpp"

namespace masque::nn {

namespace {

class SquaredReluPaper final : public AttentionNormalizer {
 public:
  std::string_view name() const override { return "squared_relu_paper"; }
  std::string_view source() const override {
    return "Hua et al. 2022, arXiv:2202.10447, code of the appendix";
  }
  ScoreMap map() const override { return ScoreMap::kSquaredRelu; }
  Divisor divisor() const override { return Divisor::kConstant; }
  double temperature(Index visible) const override {
    return 1 / static_cast<double>(std::max(visible, Index{1}));
  }
  bool scaled() const override { return false; }
};

const NormalizerRegistration kRegistration(std::make_unique<SquaredReluPaper>());

}  // namespace

}  // namespace masque::nn
