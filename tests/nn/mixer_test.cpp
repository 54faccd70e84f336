// What every mixer of the registry promises.
#include <cstring>
#include <set>

#include <doctest/doctest.h>

#include "nn/mixer_example.hpp"
#include "nn/variant.hpp"

namespace masque::test {
namespace {

using Complex = std::complex<double>;

constexpr double kStep = 1e-40;
constexpr const char* kMasks[] = {"full", "causal", "tta", "window(1)", "random(0.4,2)"};

/// The worst relative error of `found` as the gradient of Σ w ⊙ y by `by`, a part of `example`.
double worst(const MixerExample<Complex>& example, const mask::BlockMap* blocks,
             const Matrix<double>& w, Matrix<Complex>& by, const Matrix<double>& found) {
  double most = 0;
  for (std::size_t i = 0; i < by.span().size(); ++i) {
    by.span()[i] += Complex(0, kStep);
    const Matrix<Complex> y = example.forward(blocks);
    by.span()[i] -= Complex(0, kStep);
    double expected = 0;
    for (std::size_t k = 0; k < w.span().size(); ++k) {
      expected += w.span()[k] * (y.span()[k].imag() / kStep);
    }
    const double error = std::abs(found.span()[i] - expected) / (1 + std::abs(expected));
    if (!(error <= most)) most = error;
  }
  return most;
}

/// Whether row i of two matrices has the same bits.
template <class T>
bool same_row(const Matrix<T>& a, const Matrix<T>& b, Index i) {
  return std::memcmp(a.view().row(i), b.view().row(i),
                     static_cast<std::size_t>(a.columns()) * sizeof(T)) == 0;
}

TEST_CASE("gradients of x and of every parameter, for every mixer, mask and length") {
  const nn::MixerShape shape = small_shape();
  REQUIRE(nn::mixers().size() >= 18);
  for (const nn::Mixer* mixer : nn::mixers()) {
    CAPTURE(mixer->info().name);
    const std::vector<nn::MixerParameter> named = mixer->parameters(shape);
    for (const char* text : kMasks) {
      if (!obeys(*mixer, text)) continue;
      CAPTURE(text);
      for (const Index tokens : {Index{1}, Index{7}, shape.tokens}) {
        CAPTURE(tokens);
        const MaskOf mask(text, tokens);
        const MixerExample<double> example(*mixer, shape, tokens);
        MixerExample<Complex> steps(*mixer, shape, tokens);
        const Matrix<double> w = random_matrix<double>(tokens, shape.hidden_size, 9);
        // Twice: gradients are added.
        std::vector<Matrix<double>> found = example.backward(mask.blocks(), w, 2);
        for (Matrix<double>& gradient : found) {
          for (double& element : gradient.span()) element /= 2;
        }
        CHECK(worst(steps, mask.blocks(), w, steps.x, found[0]) < 1e-11);
        for (std::size_t k = 0; k < named.size(); ++k) {
          CAPTURE(named[k].name);
          if (named[k].trained) {
            CHECK(worst(steps, mask.blocks(), w, steps.parameters[k], found[k + 1]) < 1e-11);
          } else {
            for (const double element : found[k + 1].span()) CHECK(element == 0);
          }
        }
      }
    }
  }
}

TEST_CASE("gradients that are left out change nothing of the others") {
  const nn::MixerShape shape = small_shape();
  for (const nn::Mixer* mixer : nn::mixers()) {
    CAPTURE(mixer->info().name);
    const MixerExample<double> example(*mixer, shape, 5);
    const Matrix<double> w = random_matrix<double>(5, shape.hidden_size, 9);
    const std::vector<Matrix<double>> all = example.backward(nullptr, w, 1);
    const auto views = example.views();
    const nn::MixerProblem<double> problem{shape, example.x.view(), views, nullptr};
    Matrix<double> d_x = Matrix<double>::zero(5, shape.hidden_size);
    mixer->backward(problem, w.view(), {d_x.view(), {}});
    CHECK(distance(d_x, all[0]) == 0);
    for (std::size_t k = 0; k < views.size(); ++k) {
      std::vector<MatrixView<double>> to(views.size());
      Matrix<double> d = Matrix<double>::zero(views[k].rows, views[k].columns);
      to[k] = d.view();
      mixer->backward(problem, w.view(), {{}, to});
      CHECK(distance(d, all[k + 1]) == 0);
    }
  }
}

template <class T>
void check_hidden_pairs() {
  const nn::MixerShape shape = small_shape();
  for (const nn::Mixer* mixer : nn::mixers()) {
    CAPTURE(mixer->info().name);
    for (const char* text : kMasks) {
      if (!obeys(*mixer, text) || std::string_view(text) == "full") continue;
      CAPTURE(text);
      for (const Index tokens : {Index{1}, Index{7}, shape.tokens}) {
        const mask::Mask mask = mask::parse_mask(text).bind({tokens, tokens});
        const mask::BlockMap blocks(mask);
        const MixerExample<T> example(*mixer, shape, tokens);
        const Matrix<T> y = example.forward(&blocks);
        Index changed = 0;
        for (Index j = 0; j < tokens; ++j) {
          Matrix<T> other = Matrix<T>::copy(example.x.view());
          for (T& element : other.view().row_span(j)) element = static_cast<T>(-3 * element + 1);
          const Matrix<T> moved = example.forward(&blocks, other);
          for (Index i = 0; i < tokens; ++i) {
            const bool reads = mask.allows(i, j) || (i == j && mixer->info().reads_own);
            if (!reads) CHECK(same_row(y, moved, i));
            if (reads && !same_row(y, moved, i)) ++changed;
          }
        }
        // T-TA's only token sees nothing.
        if (tokens > 1) CHECK(changed > 0);
      }
    }
  }
}

TEST_CASE("a row has the same bits whatever it may not read") {
  check_hidden_pairs<float>();
  check_hidden_pairs<double>();
}

TEST_CASE("after a causal mask, more tokens change no row") {
  const nn::MixerShape shape = small_shape();
  int checked = 0;
  for (const nn::Mixer* mixer : nn::mixers()) {
    if (!obeys(*mixer, "causal")) continue;
    CAPTURE(mixer->info().name);
    const MixerExample<double> example(*mixer, shape, 9);
    const MaskOf causal("causal", 9);
    const Matrix<double> y = example.forward(causal.blocks());
    for (Index tokens = 1; tokens < 9; ++tokens) {
      const MaskOf part("causal", tokens);
      const Matrix<double> x = Matrix<double>::copy(example.x.view().middle_rows(0, tokens));
      const Matrix<double> expected = Matrix<double>::copy(y.view().middle_rows(0, tokens));
      CHECK(distance(example.forward(part.blocks(), x), expected) < 1e-13);
    }
    ++checked;
  }
  CHECK(checked >= 15);
}

TEST_CASE("a mask with all pairs is no mask, and a row that sees nothing is finite") {
  const nn::MixerShape shape = small_shape();
  for (const nn::Mixer* mixer : nn::mixers()) {
    CAPTURE(mixer->info().name);
    const MixerExample<double> example(*mixer, shape, 8);
    const mask::BlockMap full(mask::parse_mask("full").bind({8, 8}));
    CHECK(distance(example.forward(&full), example.forward(nullptr)) == 0);
    if (!obeys(*mixer, "strict_causal")) continue;
    const MaskOf strict("strict_causal", 8);
    const auto outputs = example.forward(strict.blocks());  // span() does not keep it alive
    for (const double element : outputs.span()) {
      CHECK(std::isfinite(element));
    }
  }
}

TEST_CASE("float agrees with double") {
  nn::MixerShape shape = small_shape();
  shape.tokens = 90;
  shape.hidden_size = 32;
  shape.inner_size = 16;  // a norm over two numbers, as 4 would give, has slopes without bound
  for (const nn::Mixer* mixer : nn::mixers()) {
    CAPTURE(mixer->info().name);
    const MaskOf mask(obeys(*mixer, "causal") ? "causal" : "full", 75);
    const MixerExample<float> example(*mixer, shape, 75, 0.1);
    const MixerExample<double> exact(*mixer, shape, 75, 0.1);
    const Matrix<double> y = exact.forward(mask.blocks());
    double largest = 0;
    for (const double element : y.span()) largest = std::max(largest, std::abs(element));
    CHECK(distance(example.forward(mask.blocks()), y) < 2e-6 * (1 + largest));
    const auto found = example.backward(mask.blocks(), random_matrix<float>(75, 32, 9), 1);
    const auto expected = exact.backward(mask.blocks(), random_matrix<double>(75, 32, 9), 1);
    for (std::size_t k = 0; k < found.size(); ++k) {
      CAPTURE(k);
      largest = 0;
      for (const double element : expected[k].span())
        largest = std::max(largest, std::abs(element));
      CHECK(distance(found[k], expected[k]) < 4e-6 * (1 + largest));
    }
  }
}

TEST_CASE("what a mixer cannot do is said") {
  const nn::MixerShape shape = small_shape();
  for (const nn::Mixer* mixer : nn::mixers()) {
    CAPTURE(mixer->info().name);
    const auto forward = [&](const char* text, Index tokens) {
      return MixerExample<double>(*mixer, shape, tokens).forward(MaskOf(text, tokens).blocks());
    };
    for (const char* text : kMasks) {
      if (obeys(*mixer, text)) {
        CHECK(forward(text, 8).rows() == 8);
      } else {
        CHECK_THROWS_AS(forward(text, 8), UsageError);
      }
    }
    CHECK_THROWS_AS(forward("full", shape.tokens + 1), UsageError);
    CHECK(forward("full", 0).rows() == 0);
    nn::MixerShape wrong = shape;
    wrong.num_attention_heads = 4;
    CHECK_THROWS_AS(mixer->parameters(wrong), UsageError);
    wrong = shape;
    wrong.kernel_size = 0;
    CHECK_THROWS_AS(mixer->parameters(wrong), UsageError);
  }
  nn::MixerShape odd = shape;
  odd.inner_size = 5;
  CHECK_THROWS_AS(mixer("gmlp").parameters(odd), UsageError);
}

/// Parameters, and what they make of a fixed sequence, with `value` for `size`.
std::vector<double> mixed_with(const nn::Mixer& mixer, Index nn::MixerShape::*size, Index value) {
  nn::MixerShape shape{.tokens = 8, .hidden_size = 16, .num_attention_heads = 2};
  shape.*size = value;
  const MixerExample<double> example(mixer, shape, shape.tokens);
  const Matrix<double> y = example.forward(nullptr);
  std::vector<double> out(y.span().begin(), y.span().end());
  for (const nn::MixerParameter& parameter : mixer.parameters(shape))
    out.insert(out.end(),
               {static_cast<double>(parameter.rows), static_cast<double>(parameter.columns)});
  return out;
}

TEST_CASE("a mixer lists the sizes that it depends on, and no others") {
  using Shape = nn::MixerShape;
  for (const nn::Mixer* mixer : nn::mixers()) {
    CAPTURE(mixer->info().name);
    for (Index Shape::*size :
         {&Shape::num_attention_heads, &Shape::inner_size, &Shape::attention_size,
          &Shape::kernel_size, &Shape::dilation, &Shape::chunk_size}) {
      CHECK(nn::reads_size(mixer->info(), size) ==
            (mixed_with(*mixer, size, 2) != mixed_with(*mixer, size, 4)));
    }
  }
}

TEST_CASE("every mixer describes itself, and its parameters have names of their own") {
  std::set<std::string> listed;
  for (const nn::VariantInfo& info : nn::variants()) {
    if (info.kind == "mixer") listed.insert(info.name);
  }
  CHECK(listed.size() == nn::mixers().size());
  for (const nn::Mixer* mixer : nn::mixers()) {
    const nn::MixerInfo& info = mixer->info();
    CAPTURE(info.name);
    CHECK(listed.count(std::string(info.name)) == 1);
    CHECK(nn::find_mixer(info.name) == mixer);
    for (const std::string_view text : {info.lengths, info.cost, info.source}) {
      CHECK_FALSE(text.empty());
      CHECK(text.find('\n') == std::string_view::npos);
    }
    nn::MixerShape shape = small_shape();
    shape.inner_size = 0;
    const std::vector<nn::MixerParameter> all = mixer->parameters(shape);
    CHECK(all.empty() == info.parameters.empty());
    std::set<std::string> names;
    for (const nn::MixerParameter& parameter : all) {
      CHECK(names.insert(parameter.name).second);
      CHECK(parameter.rows > 0);
      CHECK(parameter.columns > 0);
    }
    const auto first = nn::start_parameters<double>(*mixer, shape, 1);
    const auto again = nn::start_parameters<double>(*mixer, shape, 1);
    const auto other = nn::start_parameters<double>(*mixer, shape, 2);
    for (std::size_t k = 0; k < all.size(); ++k) {
      CHECK(distance(first[k], again[k]) == 0);
      CHECK((distance(first[k], other[k]) > 0) == (all[k].deviation > 0));
    }
  }
}

}  // namespace
}  // namespace masque::test
