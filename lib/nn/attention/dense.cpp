// dense: every pair, as defined. What the others are compared with.
#include "base/error.hpp"
#include "nn/attention_reference.hpp"

namespace masque::nn {

namespace {

class Dense final : public AttentionEvaluation {
 public:
  std::string_view name() const override { return "dense"; }
  std::string_view cost() const override { return "2 n² d, memory n²"; }
  std::string_view source() const override { return "Vaswani et al. 2017, arXiv:1706.03762"; }
  void forward(const AttentionProblem<float>& problem, MatrixView<float> context,
               const WeightsVisitor<float>& visit) const override {
    check_problem(problem, context);
    MASQUE_CHECK(problem.log_divisors.empty() && problem.scores.empty());
    attention_reference(problem, context, visit);
  }
  void forward(const AttentionProblem<double>& problem, MatrixView<double> context,
               const WeightsVisitor<double>& visit) const override {
    check_problem(problem, context);
    MASQUE_CHECK(problem.log_divisors.empty() && problem.scores.empty());
    attention_reference(problem, context, visit);
  }
};

const AttentionEvaluationRegistration kRegistration(std::make_unique<Dense>());

}  // namespace

}  // namespace masque::nn
