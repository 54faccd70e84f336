#include "nn/attention.hpp"

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "base/registry.hpp"
#include "nn/variant.hpp"

namespace masque::nn {

namespace {

using Evaluations = Registry<AttentionEvaluation>;

std::vector<VariantInfo> list_variants() {
  std::vector<VariantInfo> out;
  out.reserve(attention_evaluations().size());
  for (const AttentionEvaluation* evaluation : attention_evaluations()) {
    VariantInfo info;
    info.kind = "evaluation";
    info.name = evaluation->name();
    info.masks = "any";
    info.cost = evaluation->cost();
    info.source = evaluation->source();
    out.push_back(std::move(info));
  }
  return out;
}

const VariantSource kVariants(list_variants);

}  // namespace

AttentionEvaluationRegistration::AttentionEvaluationRegistration(
    std::unique_ptr<const AttentionEvaluation> evaluation) {
  Evaluations::of_process().add(std::move(evaluation));
}

std::span<const AttentionEvaluation* const> attention_evaluations() {
  return Evaluations::of_process().all();
}

const AttentionEvaluation* find_attention_evaluation(std::string_view name) {
  return Evaluations::of_process().find(name);
}

const AttentionEvaluation& choose_evaluation(Index /*queries*/, Index keys,
                                             const mask::BlockMap* /*blocks*/) {
  // Up to here the scores of a tile stay in the second cache.
  constexpr Index kMostOfBlock = 1024;
  const AttentionEvaluation* evaluation =
      find_attention_evaluation(keys <= kMostOfBlock ? "block" : "long");
  MASQUE_CHECK(evaluation != nullptr);
  return *evaluation;
}

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
  MASQUE_CHECK(problem.log_divisors.empty() || (problem.log_divisors.rows == heads &&
                                                problem.log_divisors.columns == context.rows));
  MASQUE_CHECK(problem.scores.empty() || (problem.scores.rows == heads * context.rows &&
                                          problem.scores.columns == problem.key.rows));
}

template void check_problem(const AttentionProblem<float>&, MatrixView<float>);
template void check_problem(const AttentionProblem<double>&, MatrixView<double>);

}  // namespace masque::nn
