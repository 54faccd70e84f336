// What single mixers are known to be equal to, and how information flows through them.
#include <cstring>
#include <numbers>

#include <doctest/doctest.h>

#include "kernel/activation.hpp"
#include "kernel/norm.hpp"
#include "kernel/product/linear.hpp"
#include "nn/attention/attention_reference.hpp"
#include "nn/fft.hpp"
#include "nn/mixer_example.hpp"

namespace masque::test {
namespace {

using Complex = std::complex<double>;

bool same_row(const Matrix<double>& a, const Matrix<double>& b, Index i) {
  return std::memcmp(a.view().row(i), b.view().row(i),
                     static_cast<std::size_t>(a.columns()) * sizeof(double)) == 0;
}

Matrix<double> with_other_row(const Matrix<double>& x, Index j) {
  Matrix<double> out = Matrix<double>::copy(x.view());
  for (double& element : out.view().row_span(j)) element = 1 - 2 * element;
  return out;
}

/// x Wᵀ
Matrix<double> project(const Matrix<double>& x, const Matrix<double>& weight) {
  Matrix<double> out(x.rows(), weight.rows());
  kernel::matmul_forward<double>(x.view(), weight.view(), out.view());
  return out;
}

TEST_CASE("Fourier transforms of all lengths are what their sums are") {
  std::vector<Index> lengths = {64, 97, 100, 128, 243, 256, 509};
  for (Index n = 1; n <= 40; ++n) lengths.push_back(n);
  for (const Index n : lengths) {
    CAPTURE(n);
    const Matrix<double> parts = random_matrix<double>(2, n, 4);
    std::vector<Complex> x;
    x.reserve(static_cast<std::size_t>(n));
    for (Index j = 0; j < n; ++j) x.emplace_back(parts.view().at(0, j), parts.view().at(1, j));
    std::vector<Complex> found = x;
    nn::Fourier(n).transform(found);
    double most = 0;
    for (Index k = 0; k < n; ++k) {
      Complex sum = 0;
      for (Index j = 0; j < n; ++j) {
        const double angle =
            -2 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n);
        sum += x[static_cast<std::size_t>(j)] * Complex(std::cos(angle), std::sin(angle));
      }
      most = std::max(most, std::abs(sum - found[static_cast<std::size_t>(k)]));
    }
    CHECK(most < 1e-14 * static_cast<double>(n + 10));
  }
}

TEST_CASE("fnet is the real part of two transforms, and its own transpose") {
  nn::MixerShape shape = small_shape();
  shape.tokens = 12;
  shape.hidden_size = 10;
  for (const Index tokens : {1, 2, 7, 8, 11, 12}) {
    CAPTURE(tokens);
    const MixerExample<double> example(mixer("fnet"), shape, tokens);
    const Matrix<double> y = example.forward(nullptr);
    double most = 0;
    for (Index k = 0; k < tokens; ++k) {
      for (Index l = 0; l < 10; ++l) {
        double sum = 0;
        for (Index n = 0; n < tokens; ++n) {
          for (Index m = 0; m < 10; ++m) {
            const double turns = static_cast<double>(n * k) / static_cast<double>(tokens) +
                                 static_cast<double>(m * l) / 10;
            sum += example.x.view().at(n, m) * std::cos(2 * std::numbers::pi * turns);
          }
        }
        most = std::max(most, std::abs(sum - y.view().at(k, l)));
      }
    }
    CHECK(most < 1e-12);
    const auto gradient = example.backward(nullptr, example.x, 1);
    CHECK(distance(gradient[0], y) == 0);
  }
}

TEST_CASE("synthesizer_random whose scores are q·k is attention") {
  nn::MixerShape shape = small_shape();
  shape.tokens = 7;
  MixerExample<double> example(mixer("synthesizer_random"), shape, 7);
  const Matrix<double> query = project(example.x, random_matrix<double>(6, 6, 21));
  const Matrix<double> key = project(example.x, random_matrix<double>(6, 6, 22));
  const Matrix<double> value = project(example.x, example.parameter("value.weight"));
  nn::AttentionProblem<double> problem;
  problem.query = query.view();
  problem.key = key.view();
  problem.value = value.view();
  problem.num_heads = problem.num_key_value_heads = 2;
  problem.scale = 1 / std::sqrt(3.0);
  problem.normalizer = &normalizer("softmax");
  Matrix<double>& random = example.parameter("random.weight");
  for (Index head = 0; head < 2; ++head) {
    nn::reference::scores(problem, head, random.view().middle_rows(head * 7, 7));
  }
  for (const char* text : {"full", "causal", "tta", "window(2)"}) {
    CAPTURE(text);
    const MaskOf mask(text, 7);
    problem.blocks = mask.blocks();
    CHECK(distance(example.forward(mask.blocks()), define(problem)) < 1e-14);
  }
}

TEST_CASE("a mixture that is all vanilla is attention") {
  const nn::MixerShape shape = small_shape();
  MixerExample<double> example(mixer("synthesizer_mixture"), shape, 7);
  Matrix<double>& mixture = example.parameter("mixture.weight");
  mixture.span()[0] = mixture.span()[1] = -800;  // e^−800 is 0
  mixture.span()[2] = 0;
  const Matrix<double> query = project(example.x, example.parameter("query.weight"));
  const Matrix<double> key = project(example.x, example.parameter("key.weight"));
  const Matrix<double> value = project(example.x, example.parameter("value.weight"));
  nn::AttentionProblem<double> problem;
  problem.query = query.view();
  problem.key = key.view();
  problem.value = value.view();
  problem.num_heads = problem.num_key_value_heads = 2;
  problem.scale = 1 / std::sqrt(3.0);
  problem.normalizer = &normalizer("softmax");
  const MaskOf mask("tta", 7);
  problem.blocks = mask.blocks();
  CHECK(distance(example.forward(mask.blocks()), define(problem)) < 1e-14);
}

TEST_CASE("aft with w = 0 is aft_simple") {
  const nn::MixerShape shape = small_shape();
  MixerExample<double> full(mixer("aft"), shape, 7);
  MixerExample<double> simple(mixer("aft_simple"), shape, 7);
  for (std::size_t k = 0; k < 3; ++k) {
    simple.parameters[k] = Matrix<double>::copy(full.parameters[k].view());
  }
  for (double& element : full.parameter("position.weight").span()) element = 0;
  for (const char* text : {"full", "causal", "tta"}) {
    const MaskOf mask(text, 7);
    CHECK(distance(full.forward(mask.blocks()), simple.forward(mask.blocks())) == 0);
  }
  // One number for all pairs of a row cancels.
  for (double& element : full.parameter("position.weight").span()) element = 3;
  CHECK(distance(full.forward(nullptr), simple.forward(nullptr)) < 1e-14);
}

TEST_CASE("gmlp starts as a feed-forward layer: its gate is 1") {
  const nn::MixerShape shape = small_shape();
  for (const char* name : {"gmlp", "gmlp_toeplitz"}) {
    CAPTURE(name);
    MixerExample<double> example(mixer(name), shape, 7, 0);
    const Matrix<double> x = Matrix<double>::copy(example.x.view());
    Matrix<double> norm(7, 6);
    kernel::norm_forward<double>(kernel::Norm::kLayer, x.view(), {}, {}, 1e-6, norm.view());
    Matrix<double> z = project(norm, example.parameter("in.weight"));
    kernel::activation_forward(kernel::Activation::kGelu, z.view());
    const Matrix<double> half = Matrix<double>::copy(z.view().middle_columns(0, 2));
    const Matrix<double> expected = project(half, example.parameter("out.weight"));
    CHECK(distance(example.forward(nullptr), expected) < 2e-3);
    for (double& element : example.parameter("spatial.weight").span()) element = 0;
    CHECK(distance(example.forward(nullptr), expected) < 1e-14);
  }
}

TEST_CASE("with a zero diagonal one layer does not see its own token, two layers do") {
  const nn::MixerShape shape = small_shape();
  const MaskOf tta("tta", 7);
  int checked = 0;
  for (const nn::Mixer* mixer : nn::mixers()) {
    if (!obeys(*mixer, "tta")) continue;
    CAPTURE(mixer->info().name);
    const MixerExample<double> example(*mixer, shape, 7);
    const Matrix<double> one = example.forward(tta.blocks());
    const Matrix<double> two = example.forward(tta.blocks(), one);
    for (Index i = 0; i < 7; ++i) {
      const Matrix<double> x = with_other_row(example.x, i);
      const Matrix<double> other_one = example.forward(tta.blocks(), x);
      const Matrix<double> other_two = example.forward(tta.blocks(), other_one);
      // What a gate or a query reads is the token's own.
      CHECK(same_row(one, other_one, i) == !mixer->info().reads_own);
      CHECK_FALSE(same_row(two, other_two, i));
    }
    ++checked;
  }
  CHECK(checked >= 10);
}

TEST_CASE("external attention: tokens meet in the double normalization, and nowhere else") {
  const nn::MixerShape shape = small_shape();
  for (const bool both : {false, true}) {
    const MixerExample<double> example(
        mixer(both ? "external_attention" : "external_attention_softmax"), shape, 7);
    const Matrix<double> y = example.forward(nullptr);
    const Matrix<double> moved = example.forward(nullptr, with_other_row(example.x, 3));
    for (Index i = 0; i < 7; ++i) CHECK(same_row(y, moved, i) == (!both && i != 3));
  }
}

TEST_CASE("convolutions: light taps of equal weight are a moving average") {
  nn::MixerShape shape = small_shape();
  shape.dilation = 3;
  MixerExample<double> light(mixer("light_convolution"), shape, 9);
  for (double& element : light.parameter("kernel.weight").span()) element = 7;
  MixerExample<double> depthwise(mixer("depthwise_convolution"), shape, 9);
  MixerExample<double> dynamic(mixer("dynamic_convolution"), shape, 9);
  for (MixerExample<double>* other : {&depthwise, &dynamic}) {
    for (std::size_t k = 0; k < 2; ++k) {
      other->parameters[k] = Matrix<double>::copy(light.parameters[k].view());
    }
  }
  for (double& element : depthwise.parameter("kernel.weight").span()) element = 1.0 / 3;
  for (double& element : dynamic.parameter("kernel.weight").span()) element = 0;
  for (const char* text : {"full", "causal"}) {
    const MaskOf mask(text, 9);
    const Matrix<double> y = light.forward(mask.blocks());
    CHECK(distance(depthwise.forward(mask.blocks()), y) < 1e-14);
    CHECK(distance(dynamic.forward(mask.blocks()), y) < 1e-14);
    // Row 4 reads 1, 4, 7, or 4, 1 and what lies before the text.
    const bool causal = mask.blocks() != nullptr;
    for (Index j = 0; j < 9; ++j) {
      const Matrix<double> moved = light.forward(mask.blocks(), with_other_row(light.x, j));
      const bool read = j == 1 || j == 4 || (j == 7 && !causal);
      CHECK(same_row(y, moved, 4) == !read);
    }
  }
}

}  // namespace
}  // namespace masque::test
