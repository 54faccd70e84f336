// A mixer of a small shape with random parameters, and running it.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "nn/example.hpp"
#include "nn/mixer/mixer.hpp"

namespace masque::test {

/// 9 tokens at most, an odd width of each part where a mixer allows it.
inline nn::MixerShape small_shape() {
  nn::MixerShape shape;
  shape.tokens = 9;
  shape.hidden_size = 6;
  shape.num_attention_heads = 2;
  shape.inner_size = 4;
  shape.attention_size = 3;
  shape.kernel_size = 3;
  shape.dilation = 2;
  shape.chunk_size = 3;
  return shape;
}

/// The blocks of a mask of the mask language; "full" is nullptr.
class MaskOf {
 public:
  MaskOf(std::string_view text, Index tokens) {
    if (text != "full") blocks_.emplace(mask::parse_mask(text).bind({tokens, tokens}));
  }
  const mask::BlockMap* blocks() const { return blocks_ ? &*blocks_ : nullptr; }

 private:
  std::optional<mask::BlockMap> blocks_;
};

/// Whether a mixer says that it obeys a mask of those that the tests use.
inline bool obeys(const nn::Mixer& mixer, std::string_view mask) {
  switch (mixer.info().masks) {
    case nn::MaskSupport::kAny: return true;
    case nn::MaskSupport::kCausal: return mask == "full" || mask == "causal";
    case nn::MaskSupport::kFull: return mask == "full";
  }
  return false;
}

template <class T>
struct MixerExample {
  const nn::Mixer& mixer;
  nn::MixerShape shape;
  std::vector<Matrix<T>> parameters;
  Matrix<T> x;

  /// Parameters as they start, plus noise: a bias of 0 hides mistakes.
  MixerExample(const nn::Mixer& which, const nn::MixerShape& sizes, Index tokens,
               double noise = 0.4)
      : mixer(which),
        shape(sizes),
        parameters(nn::start_parameters<T>(which, sizes, 5)),
        x(random_matrix<T>(tokens, sizes.hidden_size, 6)) {
    std::uint64_t seed = 100;
    for (Matrix<T>& parameter : parameters) {
      const Matrix<T> added =
          random_matrix<T>(parameter.rows(), parameter.columns(), ++seed, noise);
      for (std::size_t i = 0; i < added.span().size(); ++i) {
        parameter.span()[i] = static_cast<T>(parameter.span()[i] + added.span()[i]);
      }
    }
  }

  Matrix<T>& parameter(std::string_view name) {
    const std::vector<nn::MixerParameter> all = mixer.parameters(shape);
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (all[k].name == name) return parameters[k];
    }
    throw std::runtime_error("no parameter " + std::string(name));
  }

  std::vector<MatrixView<const T>> views() const {
    std::vector<MatrixView<const T>> out;
    out.reserve(parameters.size());
    for (const Matrix<T>& parameter : parameters) out.push_back(parameter.view());
    return out;
  }

  Matrix<T> forward(const mask::BlockMap* blocks) const { return forward(blocks, x); }
  Matrix<T> forward(const mask::BlockMap* blocks, const Matrix<T>& input) const {
    const auto all = views();
    Matrix<T> y(input.rows(), input.columns());
    mixer.forward(nn::MixerProblem<T>{shape, input.view(), all, blocks}, y.view());
    return y;
  }

  /// Gradients of x, then of the parameters, of Σ w ⊙ y; made `times` times on top of each other.
  std::vector<Matrix<T>> backward(const mask::BlockMap* blocks, const Matrix<T>& w,
                                  int times) const {
    const auto all = views();
    std::vector<Matrix<T>> out;
    out.reserve(parameters.size() + 1);
    out.push_back(Matrix<T>::zero(x.rows(), x.columns()));
    for (const Matrix<T>& p : parameters) out.push_back(Matrix<T>::zero(p.rows(), p.columns()));
    std::vector<MatrixView<T>> to;
    to.reserve(parameters.size());
    for (std::size_t k = 1; k < out.size(); ++k) to.push_back(out[k].view());
    for (int i = 0; i < times; ++i) {
      mixer.backward(nn::MixerProblem<T>{shape, x.view(), all, blocks}, w.view(),
                     nn::MixerGradients<T>{out[0].view(), to});
    }
    return out;
  }
};

inline const nn::Mixer& mixer(std::string_view name) {
  const nn::Mixer* found = nn::find_mixer(name);
  MASQUE_CHECK(found != nullptr);
  return *found;
}

}  // namespace masque::test
