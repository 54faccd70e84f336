// block: a tile of queries keeps the scores of all keys that it sees. Memory grows with the keys.
#include <limits>

#include "nn/tiled_attention.hpp"

namespace masque::nn {

namespace {

class Block final : public AttentionEvaluation {
 public:
  std::string_view name() const override { return "block"; }
  std::string_view cost() const override { return "2 pairs d, memory 64 n a thread"; }
  std::string_view source() const override { return "Vaswani et al. 2017, arXiv:1706.03762"; }
  void forward(const AttentionProblem<float>& problem, MatrixView<float> context,
               const WeightsVisitor<float>& visit) const override {
    attention_by_tiles(problem, context, visit, kStep);
  }
  void forward(const AttentionProblem<double>& problem, MatrixView<double> context,
               const WeightsVisitor<double>& visit) const override {
    attention_by_tiles(problem, context, visit, kStep);
  }

 private:
  /// All blocks at once.
  static constexpr Index kStep = std::numeric_limits<Index>::max();
};

const AttentionEvaluationRegistration kRegistration(std::make_unique<Block>());

}  // namespace

}  // namespace masque::nn
