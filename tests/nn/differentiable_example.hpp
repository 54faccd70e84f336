// Differentiable attention, with everything that it points to.
#pragma once

#include <span>

#include "nn/attention/differentiable_attention.hpp"
#include "nn/attention/differentiable_attention_reference.hpp"
#include "nn/example.hpp"

namespace masque::test {

/// What the forward and the backward pass make of a sequence.
template <class T>
struct Passes {
  nn::DifferentiableAttention<T> attention;
  Matrix<T> context, saved, d_context, d_query, d_key, d_value;

  Passes(const nn::DifferentiableAttention<T>& given, std::uint64_t seed) : attention(given) {
    const nn::AttentionProblem<T>& p = given.problem;
    context = context_of(p);
    saved = Matrix<T>(p.num_heads, p.query.rows);
    d_context = random_matrix<T>(context.rows(), context.columns(), seed);
    d_query = Matrix<T>::zero(p.query.rows, p.query.columns);
    d_key = Matrix<T>::zero(p.key.rows, p.key.columns);
    d_value = Matrix<T>::zero(p.value.rows, p.value.columns);
  }
  nn::DifferentiableForward<T> forward() { return {attention, context.view(), saved.view()}; }
  nn::DifferentiableBackward<T> backward() {
    const Passes& in = *this;
    return {attention,
            in.context.view(),
            in.saved.view(),
            in.d_context.view(),
            {d_query.view(), d_key.view(), d_value.view()}};
  }
  std::vector<const Matrix<T>*> results() const { return {&context, &d_query, &d_key, &d_value}; }
};

template <class T>
void run_forward(const nn::DifferentiableForward<T>& sequence) {
  nn::differentiable_attention_forward<T>(std::span(&sequence, 1));
}
template <class T>
void run_backward(const nn::DifferentiableBackward<T>& sequence) {
  nn::differentiable_attention_backward<T>(std::span(&sequence, 1));
}

/// Forward and backward of one sequence.
template <class T>
Passes<T> run_passes(const nn::DifferentiableAttention<T>& attention, std::uint64_t seed = 9) {
  Passes<T> out(attention, seed);
  run_forward(out.forward());
  run_backward(out.backward());
  return out;
}

/// The largest difference, in units of 1 plus the largest expected element.
template <class T>
double relative_distance(const Matrix<T>& found, const Matrix<double>& expected) {
  double most = 1;
  for (const double x : expected.span()) most = std::max(most, 1 + std::abs(x));
  return distance(found, expected) / most;
}

}  // namespace masque::test
