// block and long, the evaluations by tiles. block: a tile of queries keeps the scores of all keys
// that it sees; memory grows with the keys. long: keys come in steps, so that memory does not grow
// with the length; online softmax: Milakov and Gimelshein 2018, arXiv:1805.02867; Rabe and Staats
// 2021, arXiv:2112.05682.
#include <limits>

#include "nn/tiled_attention.hpp"

namespace masque::nn {

namespace {

/// `step` is the number of key blocks whose scores a tile keeps at once.
class Tiled final : public AttentionEvaluation {
 public:
  Tiled(std::string_view name, std::string_view cost, std::string_view source, Index step)
      : name_(name), cost_(cost), source_(source), step_(step) {}
  std::string_view name() const override { return name_; }
  std::string_view cost() const override { return cost_; }
  std::string_view source() const override { return source_; }
  void forward(const AttentionProblem<float>& problem, MatrixView<float> context,
               const WeightsVisitor<float>& visit) const override {
    attention_by_tiles(problem, context, visit, step_);
  }
  void forward(const AttentionProblem<double>& problem, MatrixView<double> context,
               const WeightsVisitor<double>& visit) const override {
    attention_by_tiles(problem, context, visit, step_);
  }

 private:
  std::string_view name_;
  std::string_view cost_;
  std::string_view source_;
  Index step_;
};

const AttentionEvaluationRegistration kRegistration(std::make_unique<Tiled>(
    "block", "2 pairs d, memory 64 n a thread", "Vaswani et al. 2017, arXiv:1706.03762",
    std::numeric_limits<Index>::max()));

/// 4 blocks are 256 keys: their scores stay in the first cache.
const AttentionEvaluationRegistration kLongRegistration(std::make_unique<Tiled>(
    "long", "2 pairs d, memory n",
    "Milakov and Gimelshein 2018, arXiv:1805.02867; Rabe and Staats 2021, arXiv:2112.05682", 4));

}  // namespace

}  // namespace masque::nn
