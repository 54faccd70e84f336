// Differentiable attention: against its definition, in all numbers, on any thread.
#include "nn/attention/differentiable_attention.hpp"

#include <algorithm>

#include <doctest/doctest.h>

#include "kernel/parallel.hpp"
#include "mask/bit_matrix.hpp"
#include "nn/attention/attention_gradients.hpp"
#include "nn/differentiable_example.hpp"

namespace masque::test {
namespace {

/// Context and gradients by the definition.
std::vector<Matrix<double>> expected_of(const nn::AttentionProblem<double>& problem,
                                        std::uint64_t seed = 9) {
  std::vector<Matrix<double>> out;
  out.push_back(define(problem));
  const Matrix<double> d_context = random_matrix<double>(out[0].rows(), out[0].columns(), seed);
  for (const MatrixView<const double>& x : {problem.query, problem.key, problem.value}) {
    out.push_back(Matrix<double>::zero(x.rows, x.columns));
  }
  nn::attention_reference_backward<double>(problem, d_context.view(),
                                           {out[1].view(), out[2].view(), out[3].view()});
  return out;
}

template <class T>
void check_results(const Passes<T>& found, const std::vector<Matrix<double>>& expected,
                   double most) {
  for (std::size_t k = 0; k < expected.size(); ++k) {
    CAPTURE(k);
    CHECK(relative_distance(*found.results()[k], expected[k]) < most);
  }
}

void check_shape(const Shape& shape, const mask::BlockMap* blocks,
                 const nn::AttentionNormalizer& normalizer) {
  const Example<double> exact(shape);
  const Example<float> fast(shape);
  for (const double cap : {0.0, 0.6}) {
    CAPTURE(cap);
    auto problem = exact.problem(normalizer, blocks);
    auto in_float = fast.problem(normalizer, blocks);
    problem.cap = in_float.cap = cap;
    const auto expected = expected_of(problem);
    check_results(run_passes<double>({problem}), expected, 1e-12);
    check_results(run_passes<float>({in_float}), expected, 2e-5);
  }
}

TEST_CASE(
    "differentiable attention is its definition, for every normalizer and every mask of the zoo") {
  for (const mask::MaskKind* kind : mask::mask_kinds()) {
    CAPTURE(kind->name);
    for (const mask::Mask& mask : zoo_masks(*kind, {1, 67})) {
      CAPTURE(mask.lengths().queries);
      const mask::BlockMap blocks(mask);
      const Shape shape{mask.lengths().queries, mask.lengths().keys, 4, 2, 5, 3};
      for (const nn::AttentionNormalizer* normalizer : nn::normalizers()) {
        CAPTURE(normalizer->name());
        check_shape(shape, &blocks, *normalizer);
      }
    }
  }
}

TEST_CASE("differentiable attention of many shapes") {
  const std::vector<Shape> shapes = {{1, 1, 1, 1, 1, 1},       {3, 1, 2, 2, 4, 7},
                                     {64, 64, 2, 2, 64, 64},   {65, 130, 3, 1, 33, 17},
                                     {129, 300, 2, 1, 16, 48}, {40, 20, 6, 3, 70, 31}};
  for (const Shape& shape : shapes) {
    CAPTURE(shape.queries);
    CAPTURE(shape.keys);
    for (const nn::AttentionNormalizer* normalizer : nn::normalizers()) {
      CAPTURE(normalizer->name());
      check_shape(shape, nullptr, *normalizer);
    }
    if (shape.queries != shape.keys) continue;
    const mask::BlockMap blocks(mask::parse_mask("causal").bind({shape.queries, shape.keys}));
    check_shape(shape, &blocks, normalizer("softmax"));
  }
}

TEST_CASE("rows that see nothing have context and gradients of 0") {
  const Shape shape{70, 70, 2, 1, 4, 4};
  const mask::BlockMap nothing(mask::parse_mask("~full").bind({70, 70}));
  const mask::BlockMap some(mask::parse_mask("strict_causal").bind({70, 70}));
  const Example<float> example(shape);
  for (const nn::AttentionNormalizer* normalizer : nn::normalizers()) {
    CAPTURE(normalizer->name());
    const Passes<float> none = run_passes<float>({example.problem(*normalizer, &nothing)});
    for (const Matrix<float>* x : none.results()) {
      CHECK(std::ranges::all_of(x->span(), [](float y) { return y == 0; }));
    }
    const Passes<float> first = run_passes<float>({example.problem(*normalizer, &some)});
    for (const Matrix<float>* x : first.results()) {
      CHECK(std::ranges::all_of(x->span(), [](float y) { return std::isfinite(y); }));
    }
    for (const Matrix<float>* x : {&first.context, &first.d_query}) {
      CHECK(std::ranges::all_of(x->view().row_span(0), [](float y) { return y == 0; }));
    }
    // The last key is seen by nobody.
    for (const Matrix<float>* x : {&first.d_key, &first.d_value}) {
      CHECK(std::ranges::all_of(x->view().row_span(69), [](float y) { return y == 0; }));
    }
  }
}

TEST_CASE("gradients are added, and those without data left out") {
  const Example<double> example({9, 9, 2, 1, 3, 2});
  for (const char* name : {"softmax", "cosa"}) {
    CAPTURE(name);
    Passes<double> once = run_passes<double>({example.problem(normalizer(name))});
    const Matrix<double> first = Matrix<double>::copy(once.d_query.view());
    const Matrix<double> value = Matrix<double>::copy(once.d_value.view());
    run_backward(once.backward());
    for (std::size_t i = 0; i < first.span().size(); ++i) {
      CHECK(once.d_query.span()[i] == doctest::Approx(2 * first.span()[i]));
    }
    nn::DifferentiableBackward<double> part = once.backward();
    part.gradients.query = part.gradients.key = {};
    run_backward(part);
    for (std::size_t i = 0; i < value.span().size(); ++i) {
      CHECK(once.d_value.span()[i] == doctest::Approx(3 * value.span()[i]));
    }
    for (std::size_t i = 0; i < first.span().size(); ++i) {
      CHECK(once.d_query.span()[i] == doctest::Approx(2 * first.span()[i]));
    }
  }
}

/// Every key twice: the first half as earlier ones, the second as own ones, and who reads which.
template <class T>
Matrix<T> twice(MatrixView<const T> x) {
  Matrix<T> out(2 * x.rows, x.columns);
  for (Index i = 0; i < out.rows(); ++i)
    std::copy_n(x.row(i % x.rows), x.columns, out.view().row(i));
  return out;
}

mask::Mask parted(const mask::Mask& mask, std::span<const Index> own_keys) {
  const auto [queries, keys] = mask.lengths();
  mask::BitMatrix bits(queries, 2 * keys);
  for (Index i = 0; i < queries; ++i) {
    for (Index j = 0; j < keys; ++j) {
      if (mask.allows(i, j)) bits.set(i, j < own_keys[static_cast<std::size_t>(i)] ? j : keys + j);
    }
  }
  return mask::from_bits(std::move(bits));
}

template <class T>
void check_parts(const nn::AttentionProblem<T>& problem, std::span<const Index> own_keys,
                 const std::vector<Matrix<double>>& expected, double most) {
  Passes<T> run({problem}, 9);
  run_forward(run.forward());
  Matrix<T> earlier_key = Matrix<T>::zero(problem.key.rows, problem.key.columns);
  Matrix<T> earlier_value = Matrix<T>::zero(problem.value.rows, problem.value.columns);
  nn::DifferentiableBackward<T> backward = run.backward();
  backward.own_keys = own_keys;
  backward.gradients.earlier_key = earlier_key.view();
  backward.gradients.earlier_value = earlier_value.view();
  run_backward(backward);
  const Index keys = problem.key.rows;
  const auto half = [&](std::size_t k, Index first) {
    return Matrix<double>::copy(expected[k].view().middle_rows(first, keys));
  };
  CHECK(relative_distance(run.context, expected[0]) < most);
  CHECK(relative_distance(run.d_query, expected[1]) < most);
  CHECK(relative_distance(earlier_key, half(2, 0)) < most);
  CHECK(relative_distance(run.d_key, half(2, keys)) < most);
  CHECK(relative_distance(earlier_value, half(3, 0)) < most);
  CHECK(relative_distance(run.d_value, half(3, keys)) < most);
}

TEST_CASE("gradients of earlier and of own keys are those of two keys") {
  for (const auto& [block, mask_text] : {std::pair<Index, const char*>{1, "causal"},
                                         {7, "full"},
                                         {16, "causal"},
                                         {40, "block_memory(40,25)"},
                                         {64, "causal & block_memory(64,64)"},
                                         {200, "full"}}) {
    CAPTURE(block);
    const Shape shape{131, 131, 4, 2, 12, 9};
    const mask::Mask mask = mask::parse_mask(mask_text).bind({shape.queries, shape.keys});
    std::vector<Index> own_keys;
    for (Index i = 0; i < shape.queries; ++i) own_keys.push_back(i / block * block);
    const mask::BlockMap blocks(mask), halves(parted(mask, own_keys));
    for (const nn::AttentionNormalizer* normalizer : nn::normalizers()) {
      CAPTURE(normalizer->name());
      const Example<double> exact(shape);
      const Example<float> fast(shape);
      nn::AttentionProblem<double> problem = exact.problem(*normalizer, &halves);
      const Matrix<double> key = twice(problem.key), value = twice(problem.value);
      problem.key = key.view();
      problem.value = value.view();
      const auto expected = expected_of(problem);
      check_parts(exact.problem(*normalizer, &blocks), own_keys, expected, 1e-12);
      check_parts(fast.problem(*normalizer, &blocks), own_keys, expected, 2e-5);
    }
  }
}

TEST_CASE("a batch has the bits of its sequences, on any number of threads") {
  const std::vector<Shape> shapes = {
      {5, 5, 4, 2, 8, 8}, {70, 70, 4, 2, 16, 8}, {1, 1, 1, 1, 3, 3}, {130, 40, 6, 2, 7, 9}};
  std::vector<Example<float>> examples;
  std::vector<Passes<float>> alone;
  std::vector<Passes<float>> together;
  for (const Shape& shape : shapes) {
    const Example<float>& example = examples.emplace_back(shape);
    nn::DifferentiableAttention<float> attention{example.problem(normalizer("log_n"))};
    attention.dropout = 0.1;
    attention.stream = RandomStream(3, "dropout", examples.size());
    alone.push_back(run_passes(attention));
    together.emplace_back(attention, 9);
  }
  for (const int threads : {1, 3}) {
    CAPTURE(threads);
    kernel::set_threads(threads);
    std::vector<nn::DifferentiableForward<float>> forward;
    std::vector<nn::DifferentiableBackward<float>> backward;
    for (Passes<float>& t : together) {
      for (Matrix<float>* d : {&t.d_query, &t.d_key, &t.d_value})
        std::ranges::fill(d->span(), 0.0F);
      forward.push_back(t.forward());
      backward.push_back(t.backward());
    }
    nn::differentiable_attention_forward<float>(forward);
    nn::differentiable_attention_backward<float>(backward);
    for (std::size_t i = 0; i < alone.size(); ++i) {
      CAPTURE(i);
      for (std::size_t k = 0; k < 4; ++k) {
        CHECK(std::ranges::equal(alone[i].results()[k]->span(), together[i].results()[k]->span()));
      }
    }
  }
  kernel::set_threads(0);
}

TEST_CASE("bf16: forward is the definition with rounded operands, gradients are near") {
  const Shape shape{70, 70, 4, 2, 16, 8};
  const mask::BlockMap blocks(mask::parse_mask("causal").bind({70, 70}));
  const Example<double> exact(shape);
  const Example<float> fast(shape);
  for (const nn::AttentionNormalizer* normalizer : nn::normalizers()) {
    CAPTURE(normalizer->name());
    nn::AttentionProblem<double> rounded = exact.problem(*normalizer, &blocks);
    rounded.bf16 = true;
    nn::AttentionProblem<float> problem = fast.problem(*normalizer, &blocks);
    problem.bf16 = true;
    auto expected = expected_of(exact.problem(*normalizer, &blocks));
    const Passes<float> found = run_passes<float>({problem});
    // A weight may be rounded before or after its division.
    CHECK(relative_distance(found.context, define(rounded)) < 1.0 / 256);
    check_results(found, expected, 1.0 / 32);
    CHECK(relative_distance(found.d_query, expected[1]) > 1e-5);
  }
}

}  // namespace
}  // namespace masque::test
