// Random attention problems, and how far two results may be apart.
#pragma once

#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/random/random.hpp"
#include "mask/expression.hpp"
#include "mask/zoo.hpp"
#include "nn/attention/attention_evaluation.hpp"
#include "nn/attention/attention_reference.hpp"

namespace masque::test {

/// Standard normal numbers, the same for every T.
template <class T>
Matrix<T> random_matrix(Index rows, Index columns, std::uint64_t seed, double scale = 1) {
  std::vector<double> numbers(static_cast<std::size_t>(rows * columns));
  RandomStream(seed, "tests/nn").normal(0, numbers.size(), numbers.data());
  Matrix<T> out(rows, columns);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    // float first, so that all T see the same numbers.
    out.data()[i] = static_cast<T>(static_cast<double>(static_cast<float>(scale * numbers[i])));
  }
  return out;
}

struct Shape {
  Index queries = 1;
  Index keys = 1;
  Index heads = 2;
  Index key_heads = 1;
  Index head_size = 8;
  Index value_size = 8;
};

/// A problem with everything that it points to.
template <class T>
struct Example {
  Matrix<T> query;
  Matrix<T> key;
  Matrix<T> value;
  Shape shape;

  explicit Example(const Shape& s)
      : query(random_matrix<T>(s.queries, s.heads * s.head_size, 1)),
        key(random_matrix<T>(s.keys, s.key_heads * s.head_size, 2)),
        value(random_matrix<T>(s.keys, s.key_heads * s.value_size, 3)),
        shape(s) {}

  nn::AttentionProblem<T> problem(const nn::AttentionNormalizer& normalizer,
                                  const mask::BlockMap* blocks = nullptr) const {
    nn::AttentionProblem<T> out;
    out.query = query.view();
    out.key = key.view();
    out.value = value.view();
    out.num_heads = shape.heads;
    out.num_key_value_heads = shape.key_heads;
    out.scale = 1 / std::sqrt(static_cast<double>(shape.head_size));
    out.normalizer = &normalizer;
    out.blocks = blocks;
    return out;
  }
};

template <class T>
Matrix<T> context_of(const nn::AttentionProblem<T>& problem) {
  const Index size = problem.value.columns / problem.num_key_value_heads;
  return Matrix<T>(problem.query.rows, problem.num_heads * size);
}

template <class T>
Matrix<T> evaluate(const nn::AttentionEvaluation& evaluation,
                   const nn::AttentionProblem<T>& problem) {
  Matrix<T> context = context_of(problem);
  nn::evaluate_attention(evaluation, problem, context.view());
  return context;
}

template <class T>
Matrix<T> define(const nn::AttentionProblem<T>& problem) {
  Matrix<T> context = context_of(problem);
  nn::attention_reference(problem, context.view());
  return context;
}

template <class T, class U>
double distance(const Matrix<T>& a, const Matrix<U>& b) {
  if (a.rows() != b.rows() || a.columns() != b.columns()) return HUGE_VAL;
  double most = 0;
  for (Index i = 0; i < a.rows() * a.columns(); ++i) {
    const double d = std::abs(static_cast<double>(a.data()[i]) - static_cast<double>(b.data()[i]));
    if (!(d <= most)) most = d;  // also NaN
  }
  return most;
}

/// How far an element computed in T may lie from the exact one. With ε the unit of rounding, B a
/// bound of |scores| and D the head size a score is off by (D + 2) ε B, the relative error of a
/// numerator by twice that (4 times for squares, whose slope grows with B) and a few ε, sums of S
/// terms by S ε; a row of weights sums to at most √S or B².
template <class T>
double tolerance(const Shape& shape, const Matrix<T>& query, const Matrix<T>& key,
                 const Matrix<T>& value) {
  const auto largest = [](const Matrix<T>& x) {
    double most = 0;
    for (const T& element : x.span()) most = std::max(most, std::abs(static_cast<double>(element)));
    return most;
  };
  const double epsilon = std::numeric_limits<T>::epsilon() / 2;
  const double size = static_cast<double>(shape.head_size);
  const double keys = static_cast<double>(shape.keys);
  // Random signs: the largest |q|·|k| is of the order √D times the largest elements.
  const double bound = largest(query) * largest(key);
  return epsilon * (4 * (size + 2) * bound + keys + 16) * std::sqrt(keys) * largest(value);
}

/// A mask of the zoo at its example's length, and at others where it can have them.
inline std::vector<mask::Mask> zoo_masks(const mask::MaskKind& kind,
                                         const std::vector<Index>& lengths) {
  std::vector<mask::Mask> out = {mask::parse_mask(kind.example).bind({16, 16})};
  for (const Index n : lengths) {
    try {
      out.push_back(mask::parse_mask(kind.example).bind({n, n}));
    } catch (const UsageError&) {
      // Its arguments fix the length.
    }
  }
  return out;
}

inline const nn::AttentionNormalizer& normalizer(std::string_view name) {
  const nn::AttentionNormalizer* found = nn::find_normalizer(name);
  MASQUE_CHECK(found != nullptr);
  return *found;
}

}  // namespace masque::test
