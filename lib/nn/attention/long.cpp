// long: keys come in steps, so that memory does not grow with the length. Online softmax:
// Milakov and Gimelshein 2018, arXiv:1805.02867; Rabe and Staats 2021, arXiv:2112.05682.
#include "nn/tiled_attention.hpp"

namespace masque::nn {

namespace {

class Long final : public AttentionEvaluation {
 public:
  std::string_view name() const override { return "long"; }
  std::string_view cost() const override { return "2 pairs d, memory n"; }
  std::string_view source() const override {
    return "Milakov and Gimelshein 2018, arXiv:1805.02867; Rabe and Staats 2021, arXiv:2112.05682";
  }
  void forward(const AttentionProblem<float>& problem, MatrixView<float> context,
               const WeightsVisitor<float>& visit) const override {
    attention_by_tiles(problem, context, visit, kStep);
  }
  void forward(const AttentionProblem<double>& problem, MatrixView<double> context,
               const WeightsVisitor<double>& visit) const override {
    attention_by_tiles(problem, context, visit, kStep);
  }

 private:
  /// 256 keys: their scores stay in the first cache.
  static constexpr Index kStep = 4;
};

const AttentionEvaluationRegistration kRegistration(std::make_unique<Long>());

}  // namespace

}  // namespace masque::nn
