#include "nn/attention/attention.hpp"

#include "base/error.hpp"

namespace masque::nn {

template <class T>
void check_problem(const AttentionProblem<T>& problem, MatrixView<T> context) {
  const Index heads = problem.num_heads;
  const Index groups = problem.num_key_value_heads;
  MASQUE_CHECK(problem.normalizer != nullptr && heads > 0 && groups > 0 && heads % groups == 0);
  MASQUE_CHECK(problem.query.columns % heads == 0 && problem.key.columns % groups == 0 &&
               problem.value.columns % groups == 0);
  MASQUE_CHECK(problem.query.columns / heads == problem.key.columns / groups);
  MASQUE_CHECK(problem.key.rows == problem.value.rows && context.rows == problem.query.rows);
  MASQUE_CHECK(context.columns / heads == problem.value.columns / groups &&
               context.columns % heads == 0);
  MASQUE_CHECK(problem.blocks == nullptr ||
               problem.blocks->lengths() == (mask::Lengths{problem.query.rows, problem.key.rows}));
  MASQUE_CHECK(problem.blocks == nullptr || !problem.blocks->by_head() ||
               problem.blocks->heads() == heads);
  MASQUE_CHECK(problem.sinks.empty() ||
               (std::ssize(problem.sinks) == heads && problem.normalizer->map() == ScoreMap::kExp &&
                problem.normalizer->divisor() == Divisor::kSum));
  MASQUE_CHECK(problem.log_divisors.empty() || (problem.log_divisors.rows == heads &&
                                                problem.log_divisors.columns == context.rows));
  MASQUE_CHECK(problem.scores.empty() || (problem.scores.rows == heads * context.rows &&
                                          problem.scores.columns == problem.key.rows));
}

template void check_problem(const AttentionProblem<float>&, MatrixView<float>);
template void check_problem(const AttentionProblem<double>&, MatrixView<double>);

}  // namespace masque::nn
