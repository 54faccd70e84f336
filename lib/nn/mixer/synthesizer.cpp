// Synthesizer: attention whose scores are not made from pairs of tokens.
//     y_h = softmax(B_h) (x W_vᵀ)_h        for every head h
// Tay et al. 2020, arXiv:2005.00743. What B is, a class of scores says.
#include <array>
#include <cmath>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/divide.hpp"
#include "nn/mixer/mixer_of.hpp"
#include "nn/mixer/parts.hpp"

namespace masque::nn::mixing {

namespace {

/// relu(x W₁ᵀ + b₁) W₂ᵀ + b₂ of each head, with its own weights: four parameters from `first` on.
struct HeadLayers {
  std::size_t first;  ///< in the list of parameters
  Index inner;        ///< hidden units of a head
  Index outputs;      ///< rows of a head's W₂

  static constexpr std::size_t kParameters = 4;  ///< W₁, b₁, W₂, b₂

  /// Adds the four parameters for `shape` to `out`: `inner` hidden units and `outputs` rows of W₂ a
  /// head; their names begin with `name`.
  static void declare(const std::string& name, const MixerShape& shape, Index inner, Index outputs,
                      std::vector<MixerParameter>& out) {
    const Index heads = shape.num_attention_heads;
    out.push_back(weight_parameter(name + "1.weight", heads * inner, shape.hidden_size));
    out.push_back(constant_parameter(name + "1.bias", heads, inner, 0));
    out.push_back(weight_parameter(name + "2.weight", heads * outputs, inner));
    out.push_back(constant_parameter(name + "2.bias", heads, outputs, 0));
  }

  /// x W₁ᵀ + b₁ (T, inner) of `head` for `problem`.
  template <class T>
  Matrix<T> hidden(const MixerProblem<T>& problem, Index head) const {
    const auto p = problem.parameters.subspan(first);
    Matrix<T> out = project(problem.x, head_rows(problem.shape, p[0], head));
    add_to_rows(p[1].middle_rows(head, 1), out.view());
    return out;
  }

  /// The first `columns` outputs of `head` for `problem`, (T, columns).
  template <class T>
  Matrix<T> forward(const MixerProblem<T>& problem, Index head, Index columns) const {
    const auto p = problem.parameters.subspan(first);
    Matrix<T> middle = hidden(problem, head);
    kernel::activation_forward(kernel::Activation::kRelu, middle.view());
    Matrix<T> out = project(std::as_const(middle).view(),
                            head_rows(problem.shape, p[2], head).middle_rows(0, columns));
    add_to_rows(p[3].middle_rows(head, 1).middle_columns(0, columns), out.view());
    return out;
  }

  /// From `d_out` (T, columns), the gradient by forward() of `head`, adds to
  /// `gradients` of `problem`.
  template <class T>
  void backward(const MixerProblem<T>& problem, Index head, MatrixView<const T> d_out,
                const MixerGradients<T>& gradients) const {
    const auto p = problem.parameters.subspan(first);
    const auto d = gradients.parameters.subspan(first);
    const MixerShape& shape = problem.shape;
    const Matrix<T> before = hidden(problem, head);
    const Matrix<T> middle = activated<T>(kernel::Activation::kRelu, before.view());
    Matrix<T> d_middle = Matrix<T>::zero(middle.rows(), middle.columns());
    kernel::matmul_backward<T>(
        middle.view(), head_rows(shape, p[2], head).middle_rows(0, d_out.columns), d_out,
        d_middle.view(), head_rows(shape, d[2], head).middle_rows(0, d_out.columns));
    add_row_sums(d_out, d[3].middle_rows(head, 1).middle_columns(0, d_out.columns));
    const Matrix<T> d_before = activated_backward<T>(kernel::Activation::kRelu, before.view(),
                                                     std::as_const(d_middle).view());
    kernel::matmul_backward<T>(problem.x, head_rows(shape, p[0], head), d_before.view(),
                               gradients.x, head_rows(shape, d[0], head));
    add_row_sums(d_before.view(), d[1].middle_rows(head, 1));
  }
};

/// Synthesizer with scores of the class Scores, whose parameters are those after value.weight:
///
///     static void declare(const MixerShape&, std::vector<MixerParameter>&);
///     template <class T>  // (T, T) of a head; p: its first parameter
///     static Matrix<T> scores(const MixerProblem<T>&, std::size_t p, Index head);
///     template <class T>
///     static void backward(const MixerProblem<T>&, std::size_t p, Index head,
///                          MatrixView<const T> d_scores, const MixerGradients<T>&);
template <class Derived, class Scores>
class Synthesizer : public MixerOf<Derived> {
 public:
  /// Adds the parameters for `shape` to `out`.
  void declare(const MixerShape& shape, std::vector<MixerParameter>& out) const {
    out.push_back(weight_parameter("value.weight", shape.hidden_size, shape.hidden_size));
    Scores::declare(shape, out);
  }

  /// Sets `y` (T, d) to the mixing of `problem`: see MixerOf.
  template <class T>
  void mix(const MixerProblem<T>& problem, MatrixView<T> y) const {
    const MixerShape& shape = problem.shape;
    const Matrix<T> value = project(problem.x, problem.parameters[0]);
    for (Index head = 0; head < shape.num_attention_heads; ++head) {
      const Matrix<T> weights = weights_of(problem, head);
      kernel::matmul_plain<T>(weights.view(), head_columns(shape, value.view(), head),
                              head_columns(shape, y, head));
    }
  }

  /// From `d_y`, the gradient by y, adds to all `gradients` of `problem`: see MixerOf.
  template <class T>
  void mix_backward(const MixerProblem<T>& problem, MatrixView<const T> d_y,
                    const MixerGradients<T>& gradients) const {
    const MixerShape& shape = problem.shape;
    const Matrix<T> value = project(problem.x, problem.parameters[0]);
    Matrix<T> d_value = Matrix<T>::zero(value.rows(), value.columns());
    for (Index head = 0; head < shape.num_attention_heads; ++head) {
      const Matrix<T> weights = weights_of(problem, head);
      const MatrixView<const T> d_out = head_columns(shape, d_y, head);
      const Matrix<T> d_weights = project(d_out, head_columns(shape, value.view(), head));
      add_transposed_product<T>(weights.view(), d_out, head_columns(shape, d_value.view(), head));
      const Matrix<T> d_scores = softmax_backward<T>(weights.view(), d_weights.view());
      Scores::template backward<T>(problem, 1, head, d_scores.view(), gradients);
    }
    kernel::matmul_backward<T>(problem.x, problem.parameters[0], std::as_const(d_value).view(),
                               gradients.x, gradients.parameters[0]);
  }

 private:
  template <class T>
  static Matrix<T> weights_of(const MixerProblem<T>& problem, Index head) {
    Matrix<T> weights = Scores::template scores<T>(problem, 1, head);
    masked_softmax(problem.blocks, weights.view());
    return weights;
  }
};

/// B = relu(x W₁ᵀ + b₁) W₂ᵀ + b₂, W₂ (n, inner); inner: inner_size, or the head size if that is 0.
struct DenseScores {
  /// The layers for `shape`, whose parameters begin at `first`.
  static HeadLayers layers(const MixerShape& shape, std::size_t first) {
    const Index inner =
        shape.inner_size > 0 ? shape.inner_size : shape.hidden_size / shape.num_attention_heads;
    return {first, inner, shape.tokens};
  }
  static constexpr std::size_t kParameters = HeadLayers::kParameters;  ///< number of parameters
  static constexpr bool kReadsInner = true;  ///< whether inner_size counts

  /// Adds the parameters for `shape` to `out`.
  static void declare(const MixerShape& shape, std::vector<MixerParameter>& out) {
    HeadLayers::declare("dense", shape, layers(shape, 0).inner, shape.tokens, out);
  }
  /// B (T, T) of `head` for `problem`; `p` is its first parameter.
  template <class T>
  static Matrix<T> scores(const MixerProblem<T>& problem, std::size_t p, Index head) {
    return layers(problem.shape, p).forward(problem, head, problem.x.rows);
  }
  /// From `d_scores` (T, T), the gradient by scores() of `head`, adds to the `gradients` of
  /// `problem`; `p` is its first parameter.
  template <class T>
  static void backward(const MixerProblem<T>& problem, std::size_t p, Index head,
                       MatrixView<const T> d_scores, const MixerGradients<T>& gradients) {
    layers(problem.shape, p).backward(problem, head, d_scores, gradients);
  }
};

/// B_ij = P_{i, ⌊j / b⌋} Q_{i, j mod b}: two dense synthesizers with a and b outputs, ab ≥ n, each
/// repeated to length ab and multiplied. The paper leaves the order of the repetition open; this
/// one gives every pair of outputs once.
struct FactorizedDenseScores {
  static constexpr std::size_t kParameters = 2 * HeadLayers::kParameters;  ///< number of parameters
  static constexpr bool kReadsInner = true;  ///< whether inner_size counts

  /// Sizes of the two synthesizers.
  struct Sizes {
    Index inner;  ///< hidden units of each
    Index a;      ///< outputs of the left one, ⌈√n⌉
    Index b;      ///< outputs of the right one, ⌈n / a⌉
  };
  /// The sizes for `shape`.
  static Sizes sizes(const MixerShape& shape) {
    const Index inner =
        shape.inner_size > 0 ? shape.inner_size : shape.hidden_size / shape.num_attention_heads;
    Index a = 1;
    while (a * a < shape.tokens) ++a;
    return {inner, a, divide_up(shape.tokens, a)};
  }
  /// The left one for `shape`, whose parameters begin at `p`.
  static HeadLayers left(const MixerShape& shape, std::size_t p) {
    return {p, sizes(shape).inner, sizes(shape).a};
  }
  /// The right one for `shape`, of scores whose parameters begin at `p`.
  static HeadLayers right(const MixerShape& shape, std::size_t p) {
    return {p + HeadLayers::kParameters, sizes(shape).inner, sizes(shape).b};
  }

  /// Adds the parameters for `shape` to `out`.
  static void declare(const MixerShape& shape, std::vector<MixerParameter>& out) {
    const auto [inner, a, b] = sizes(shape);
    HeadLayers::declare("left", shape, inner, a, out);
    HeadLayers::declare("right", shape, inner, b, out);
  }

  /// B (T, T) of `head` for `problem`; `p` is its first parameter.
  template <class T>
  static Matrix<T> scores(const MixerProblem<T>& problem, std::size_t p, Index head) {
    const auto [inner, a, b] = sizes(problem.shape);
    const Matrix<T> P = left(problem.shape, p).forward(problem, head, a);
    const Matrix<T> Q = right(problem.shape, p).forward(problem, head, b);
    const Index tokens = problem.x.rows;
    Matrix<T> out(tokens, tokens);
    for (Index i = 0; i < tokens; ++i) {
      for (Index j = 0; j < tokens; ++j) {
        out.view().at(i, j) = P.view().at(i, j / b) * Q.view().at(i, j % b);
      }
    }
    return out;
  }

  /// From `d_scores` (T, T), the gradient by scores() of `head`, adds to the `gradients` of
  /// `problem`; `p` is its first parameter.
  template <class T>
  static void backward(const MixerProblem<T>& problem, std::size_t p, Index head,
                       MatrixView<const T> d_scores, const MixerGradients<T>& gradients) {
    const auto [inner, a, b] = sizes(problem.shape);
    const Matrix<T> P = left(problem.shape, p).forward(problem, head, a);
    const Matrix<T> Q = right(problem.shape, p).forward(problem, head, b);
    Matrix<T> d_p = Matrix<T>::zero(P.rows(), a);
    Matrix<T> d_q = Matrix<T>::zero(Q.rows(), b);
    for (Index i = 0; i < d_scores.rows; ++i) {
      for (Index j = 0; j < d_scores.columns; ++j) {
        d_p.view().at(i, j / b) += d_scores.at(i, j) * Q.view().at(i, j % b);
        d_q.view().at(i, j % b) += d_scores.at(i, j) * P.view().at(i, j / b);
      }
    }
    left(problem.shape, p).backward(problem, head, std::as_const(d_p).view(), gradients);
    right(problem.shape, p).backward(problem, head, std::as_const(d_q).view(), gradients);
  }
};

/// B = R (n, n), trained or as it started.
template <bool kTrained>
struct RandomScores {
  static constexpr std::size_t kParameters = 1;  ///< number of parameters
  static constexpr bool kReadsInner = false;     ///< whether inner_size counts

  /// Adds the parameter for `shape` to `out`.
  static void declare(const MixerShape& shape, std::vector<MixerParameter>& out) {
    out.push_back(
        {"random.weight", shape.num_attention_heads * shape.tokens, shape.tokens, 0, 1, kTrained});
  }
  /// B (T, T) of `head` for `problem`; `p` is its first parameter.
  template <class T>
  static Matrix<T> scores(const MixerProblem<T>& problem, std::size_t p, Index head) {
    return Matrix<T>::copy(leading(problem, problem.parameters[p], head));
  }
  /// From `d_scores` (T, T), the gradient by scores() of `head`, adds to the `gradients` of
  /// `problem` if R is trained; `p` is its first parameter.
  template <class T>
  static void backward(const MixerProblem<T>& problem, std::size_t p, Index head,
                       MatrixView<const T> d_scores, const MixerGradients<T>& gradients) {
    if constexpr (kTrained) {
      kernel::add_to<T>(d_scores, leading(problem, gradients.parameters[p], head));
    }
  }

 private:
  template <class T, class U>
  static MatrixView<U> leading(const MixerProblem<T>& problem, MatrixView<U> r, Index head) {
    const Index tokens = problem.x.rows;
    return head_rows(problem.shape, r, head).middle_rows(0, tokens).middle_columns(0, tokens);
  }
};

/// B = R₁ R₂ᵀ, both (n, inner); inner: inner_size, or 8 if that is 0.
struct FactorizedRandomScores {
  static constexpr std::size_t kParameters = 2;  ///< number of parameters
  static constexpr bool kReadsInner = true;      ///< whether inner_size counts

  /// Adds the parameters for `shape` to `out`.
  static void declare(const MixerShape& shape, std::vector<MixerParameter>& out) {
    const Index rank = shape.inner_size > 0 ? shape.inner_size : 8;
    const Index rows = shape.num_attention_heads * shape.tokens;
    // Scores of deviation 1, as those of synthesizer_random.
    const double deviation = std::pow(static_cast<double>(rank), -0.25);
    out.push_back({"random1.weight", rows, rank, 0, deviation});
    out.push_back({"random2.weight", rows, rank, 0, deviation});
  }

  /// B (T, T) of `head` for `problem`; `p` is its first parameter.
  template <class T>
  static Matrix<T> scores(const MixerProblem<T>& problem, std::size_t p, Index head) {
    return project(leading(problem, problem.parameters[p], head),
                   leading(problem, problem.parameters[p + 1], head));
  }

  /// From `d_scores` (T, T), the gradient by scores() of `head`, adds to the `gradients` of
  /// `problem`; `p` is its first parameter.
  template <class T>
  static void backward(const MixerProblem<T>& problem, std::size_t p, Index head,
                       MatrixView<const T> d_scores, const MixerGradients<T>& gradients) {
    kernel::matmul_backward<T>(leading(problem, problem.parameters[p], head),
                               leading(problem, problem.parameters[p + 1], head), d_scores,
                               leading(problem, gradients.parameters[p], head),
                               leading(problem, gradients.parameters[p + 1], head));
  }

 private:
  template <class T, class U>
  static MatrixView<U> leading(const MixerProblem<T>& problem, MatrixView<U> r, Index head) {
    return head_rows(problem.shape, r, head).middle_rows(0, problem.x.rows);
  }
};

/// B = q·k / √(head size), as vanilla attention has it.
struct VanillaScores {
  static constexpr std::size_t kParameters = 2;  ///< number of parameters
  static constexpr bool kReadsInner = false;     ///< whether inner_size counts

  /// Adds the parameters for `shape` to `out`.
  static void declare(const MixerShape& shape, std::vector<MixerParameter>& out) {
    out.push_back(weight_parameter("query.weight", shape.hidden_size, shape.hidden_size));
    out.push_back(weight_parameter("key.weight", shape.hidden_size, shape.hidden_size));
  }

  /// 1 / √(head size) of `shape`.
  template <class T>
  static T scale(const MixerShape& shape) {
    const Index size = shape.hidden_size / shape.num_attention_heads;
    return static_cast<T>(1 / std::sqrt(static_cast<double>(size)));
  }

  /// x times the rows of `head` in the weight at `p` of `problem`: (T, head size).
  template <class T>
  static Matrix<T> projected(const MixerProblem<T>& problem, std::size_t p, Index head) {
    return project(problem.x, head_rows(problem.shape, problem.parameters[p], head));
  }

  /// B (T, T) of `head` for `problem`; `p` is its first parameter.
  template <class T>
  static Matrix<T> scores(const MixerProblem<T>& problem, std::size_t p, Index head) {
    const Matrix<T> query = projected(problem, p, head);
    const Matrix<T> key = projected(problem, p + 1, head);
    Matrix<T> out = project(query.view(), key.view());
    for (T& score : out.span()) score *= scale<T>(problem.shape);
    return out;
  }

  /// From `d_scores` (T, T), the gradient by scores() of `head`, adds to the `gradients` of
  /// `problem`; `p` is its first parameter.
  template <class T>
  static void backward(const MixerProblem<T>& problem, std::size_t p, Index head,
                       MatrixView<const T> d_scores, const MixerGradients<T>& gradients) {
    const Matrix<T> query = projected(problem, p, head);
    const Matrix<T> key = projected(problem, p + 1, head);
    Matrix<T> d_products = Matrix<T>::copy(d_scores);
    for (T& score : d_products.span()) score *= scale<T>(problem.shape);
    Matrix<T> d_query = Matrix<T>::zero(query.rows(), query.columns());
    Matrix<T> d_key = Matrix<T>::zero(key.rows(), key.columns());
    kernel::matmul_backward<T>(query.view(), key.view(), d_products.view(), d_query.view(),
                               d_key.view());
    const auto back = [&](std::size_t k, const Matrix<T>& d_projected) {
      kernel::matmul_backward<T>(problem.x, head_rows(problem.shape, problem.parameters[k], head),
                                 d_projected.view(), gradients.x,
                                 head_rows(problem.shape, gradients.parameters[k], head));
    };
    back(p, d_query);
    back(p + 1, d_key);
  }
};

}  // namespace

}  // namespace masque::nn::mixing

namespace masque::nn {

namespace {

class SynthesizerDense final : public mixing::Synthesizer<SynthesizerDense, mixing::DenseScores> {
 public:
  static MixerInfo describe() {
    return {"synthesizer_dense",
            "value d × d; per head W1 inner × d, b1, W2 n × inner, b2; inner = d / heads",
            MaskSupport::kAny,
            true,
            "the leading rows of W2",
            "2 n d² + 2 n² d",
            "Tay 2020, arXiv:2005.00743",
            {&MixerShape::num_attention_heads, &MixerShape::inner_size}};
  }
};

/// synthesizer_random, and synthesizer_fixed, whose scores stay as they were drawn. With T-TA's
/// constant values in place of x the latter is a bag of words by position, the floor that other
/// mixers are measured against.
template <bool kTrained>
class SynthesizerRandom final
    : public mixing::Synthesizer<SynthesizerRandom<kTrained>, mixing::RandomScores<kTrained>> {
 public:
  static MixerInfo describe() {
    return {kTrained ? "synthesizer_random" : "synthesizer_fixed",
            kTrained ? "value d × d; per head scores n × n"
                     : "value d × d; per head frozen scores n × n",
            MaskSupport::kAny,
            false,
            "the leading rows and columns of the scores",
            "n d² + n² d",
            "Tay 2020, arXiv:2005.00743",
            {&MixerShape::num_attention_heads}};
  }
};

/// The synthesizer whose scores are FactorizedDenseScores.
class SynthesizerFactorizedDense final
    : public mixing::Synthesizer<SynthesizerFactorizedDense, mixing::FactorizedDenseScores> {
 public:
  static MixerInfo describe() {
    return {"synthesizer_factorized_dense",
            "value d × d; per head twice W1 inner × d, b1, W2 a × inner, b2; inner = d / heads, a "
            "= ⌈√n⌉, b = ⌈n / a⌉",
            MaskSupport::kAny,
            true,
            "the leading products",
            "3 n d² + n² d",
            "Tay 2020, arXiv:2005.00743",
            {&MixerShape::num_attention_heads, &MixerShape::inner_size}};
  }
};

/// B = R₁ R₂ᵀ, both (n, inner).
class SynthesizerFactorizedRandom final
    : public mixing::Synthesizer<SynthesizerFactorizedRandom, mixing::FactorizedRandomScores> {
 public:
  static MixerInfo describe() {
    return {"synthesizer_factorized_random",
            "value d × d; per head two factors n × inner; inner = 8",
            MaskSupport::kAny,
            false,
            "the leading rows of both factors",
            "n d² + n² d + n² heads inner",
            "Tay 2020, arXiv:2005.00743",
            {&MixerShape::num_attention_heads, &MixerShape::inner_size}};
  }
};

/// B = Σ_k α_k B_k of two or three kinds of scores, α the softmax of as many trained numbers.
template <class... Parts>
struct MixtureScores {
  static constexpr std::size_t kParts = sizeof...(Parts);

  /// What MixerInfo::sizes of a mixture has: whatever a part reads.
  static std::vector<Index MixerShape::*> sizes() {
    std::vector<Index MixerShape::*> out{&MixerShape::num_attention_heads};
    if ((Parts::kReadsInner || ...)) out.push_back(&MixerShape::inner_size);
    return out;
  }

  static void declare(const MixerShape& shape, std::vector<MixerParameter>& out) {
    out.push_back(mixing::constant_parameter("mixture.weight", 1, Index{kParts}, 0));
    (Parts::declare(shape, out), ...);
  }

  /// The first parameter of each part, when those of the mixture begin at `p`.
  static std::array<std::size_t, kParts> first_parameters(std::size_t p) {
    std::array<std::size_t, kParts> first{Parts::kParameters...};
    std::size_t next = p + 1;
    for (std::size_t& own : first) next += std::exchange(own, next);
    return first;
  }

  template <class T>
  static std::array<Matrix<T>, kParts> parts(const MixerProblem<T>& problem, std::size_t p,
                                             Index head) {
    const auto first = first_parameters(p);
    std::size_t k = 0;
    return {Parts::scores(problem, first[k++], head)...};
    // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks): the matrices own their memory
  }

  /// α (1, parts).
  template <class T>
  static Matrix<T> shares(const MixerProblem<T>& problem, std::size_t p) {
    Matrix<T> out = Matrix<T>::copy(problem.parameters[p]);
    mixing::masked_softmax(nullptr, out.view());
    return out;
  }

  template <class T>
  static Matrix<T> scores(const MixerProblem<T>& problem, std::size_t p, Index head) {
    const auto all = parts(problem, p, head);
    const Matrix<T> share = shares(problem, p);
    Matrix<T> out = Matrix<T>::zero(problem.x.rows, problem.x.rows);
    for (std::size_t k = 0; k < kParts; ++k) {
      const auto from = all[k].span();
      for (std::size_t i = 0; i < from.size(); ++i) out.span()[i] += share.span()[k] * from[i];
    }
    return out;
  }

  template <class T>
  static void backward(const MixerProblem<T>& problem, std::size_t p, Index head,
                       MatrixView<const T> d_scores, const MixerGradients<T>& gradients) {
    const auto all = parts(problem, p, head);
    const Matrix<T> share = shares(problem, p);
    Matrix<T> d_share = Matrix<T>::zero(1, Index{kParts});
    std::array<Matrix<T>, kParts> d_parts;
    for (std::size_t k = 0; k < kParts; ++k) {
      const T alpha = share.span()[k];
      d_parts[k] = Matrix<T>::copy(d_scores);
      // As many terms as pairs of tokens, which nearly cancel: the sum is wide.
      std::conditional_t<std::is_same_v<T, float>, double, T> along{};
      for (std::size_t i = 0; i < all[k].span().size(); ++i) {
        along += all[k].span()[i] * d_parts[k].span()[i];
        d_parts[k].span()[i] *= alpha;
      }
      d_share.span()[k] = static_cast<T>(along);
    }
    const Matrix<T> d_mixture =
        mixing::softmax_backward<T>(share.view(), std::as_const(d_share).view());
    kernel::add_to<T>(d_mixture.view(), gradients.parameters[p]);
    const auto first = first_parameters(p);
    std::size_t k = 0;
    (
        [&] {
          Parts::template backward<T>(problem, first[k], head, std::as_const(d_parts[k]).view(),
                                      gradients);
          ++k;
        }(),
        ...);
  }
};

using mixing::DenseScores;
using mixing::FactorizedDenseScores;
using mixing::FactorizedRandomScores;
using mixing::VanillaScores;
using RandomScores = mixing::RandomScores<true>;

struct DenseRandomVanilla : MixtureScores<DenseScores, RandomScores, VanillaScores> {
  static constexpr const char* kName = "synthesizer_mixture";
  static constexpr const char* kInfo =
      "value, query, key d × d; three mixture weights; parameters of synthesizer_dense and "
      "synthesizer_random";
  static constexpr const char* kCost = "4 n d² + 3 n² d";
};
struct DenseRandom : MixtureScores<DenseScores, RandomScores> {
  static constexpr const char* kName = "synthesizer_dense_random";
  static constexpr const char* kInfo =
      "two mixture weights; parameters of synthesizer_dense and synthesizer_random";
  static constexpr const char* kCost = "2 n d² + 2 n² d";
};
struct DenseVanilla : MixtureScores<DenseScores, VanillaScores> {
  static constexpr const char* kName = "synthesizer_dense_vanilla";
  static constexpr const char* kInfo =
      "value, query, key d × d; two mixture weights; parameters of synthesizer_dense";
  static constexpr const char* kCost = "4 n d² + 3 n² d";
};
struct RandomVanilla : MixtureScores<RandomScores, VanillaScores> {
  static constexpr const char* kName = "synthesizer_random_vanilla";
  static constexpr const char* kInfo =
      "value, query, key d × d; two mixture weights; parameters of synthesizer_random";
  static constexpr const char* kCost = "3 n d² + 2 n² d";
};
struct FactorizedRandomVanilla : MixtureScores<FactorizedRandomScores, VanillaScores> {
  static constexpr const char* kName = "synthesizer_factorized_random_vanilla";
  static constexpr const char* kInfo =
      "value, query, key d × d; two mixture weights; parameters of synthesizer_factorized_random";
  static constexpr const char* kCost = "3 n d² + 2 n² d + n² heads inner";
};
struct DenseFactorizedRandom : MixtureScores<DenseScores, FactorizedRandomScores> {
  static constexpr const char* kName = "synthesizer_dense_factorized_random";
  static constexpr const char* kInfo =
      "two mixture weights; parameters of synthesizer_dense and synthesizer_factorized_random";
  static constexpr const char* kCost = "2 n d² + 2 n² d + n² heads inner";
};
struct DenseFactorizedRandomVanilla
    : MixtureScores<DenseScores, FactorizedRandomScores, VanillaScores> {
  static constexpr const char* kName = "synthesizer_dense_factorized_random_vanilla";
  static constexpr const char* kInfo =
      "value, query, key d × d; three mixture weights; parameters of synthesizer_dense and "
      "synthesizer_factorized_random";
  static constexpr const char* kCost = "4 n d² + 3 n² d + n² heads inner";
};
struct FactorizedDenseRandom : MixtureScores<FactorizedDenseScores, RandomScores> {
  static constexpr const char* kName = "synthesizer_factorized_dense_random";
  static constexpr const char* kInfo =
      "two mixture weights; parameters of synthesizer_factorized_dense and synthesizer_random";
  static constexpr const char* kCost = "3 n d² + n² d";
};
struct FactorizedDenseFactorizedRandom
    : MixtureScores<FactorizedDenseScores, FactorizedRandomScores> {
  static constexpr const char* kName = "synthesizer_factorized_dense_factorized_random";
  static constexpr const char* kInfo =
      "two mixture weights; parameters of synthesizer_factorized_dense and "
      "synthesizer_factorized_random";
  static constexpr const char* kCost = "3 n d² + n² d + n² heads inner";
};
struct FactorizedDenseVanilla : MixtureScores<FactorizedDenseScores, VanillaScores> {
  static constexpr const char* kName = "synthesizer_factorized_dense_vanilla";
  static constexpr const char* kInfo =
      "value, query, key d × d; two mixture weights; parameters of synthesizer_factorized_dense";
  static constexpr const char* kCost = "5 n d² + 2 n² d";
};
struct FactorizedDenseRandomVanilla
    : MixtureScores<FactorizedDenseScores, RandomScores, VanillaScores> {
  static constexpr const char* kName = "synthesizer_factorized_dense_random_vanilla";
  static constexpr const char* kInfo =
      "value, query, key d × d; three mixture weights; parameters of synthesizer_factorized_dense "
      "and synthesizer_random";
  static constexpr const char* kCost = "5 n d² + 2 n² d";
};
struct FactorizedDenseFactorizedRandomVanilla
    : MixtureScores<FactorizedDenseScores, FactorizedRandomScores, VanillaScores> {
  static constexpr const char* kName = "synthesizer_factorized_dense_factorized_random_vanilla";
  static constexpr const char* kInfo =
      "value, query, key d × d; three mixture weights; parameters of synthesizer_factorized_dense "
      "and synthesizer_factorized_random";
  static constexpr const char* kCost = "5 n d² + 2 n² d + n² heads inner";
};

template <class Scores>
class SynthesizerMixture final : public mixing::Synthesizer<SynthesizerMixture<Scores>, Scores> {
 public:
  static MixerInfo describe() {
    return {Scores::kName,
            Scores::kInfo,
            MaskSupport::kAny,
            true,
            "the leading rows and columns of the scores",
            Scores::kCost,
            "Tay 2020, arXiv:2005.00743",
            Scores::sizes()};
  }
};

const MixerRegistration kRegistrations[] = {
    MixerRegistration(std::make_unique<SynthesizerDense>()),
    MixerRegistration(std::make_unique<SynthesizerRandom<true>>()),
    MixerRegistration(std::make_unique<SynthesizerRandom<false>>()),
    MixerRegistration(std::make_unique<SynthesizerFactorizedDense>()),
    MixerRegistration(std::make_unique<SynthesizerFactorizedRandom>()),
    MixerRegistration(std::make_unique<SynthesizerMixture<DenseRandomVanilla>>()),
    MixerRegistration(std::make_unique<SynthesizerMixture<DenseRandom>>()),
    MixerRegistration(std::make_unique<SynthesizerMixture<DenseVanilla>>()),
    MixerRegistration(std::make_unique<SynthesizerMixture<RandomVanilla>>()),
    MixerRegistration(std::make_unique<SynthesizerMixture<FactorizedRandomVanilla>>()),
    MixerRegistration(std::make_unique<SynthesizerMixture<DenseFactorizedRandom>>()),
    MixerRegistration(std::make_unique<SynthesizerMixture<DenseFactorizedRandomVanilla>>()),
    MixerRegistration(std::make_unique<SynthesizerMixture<FactorizedDenseRandom>>()),
    MixerRegistration(std::make_unique<SynthesizerMixture<FactorizedDenseFactorizedRandom>>()),
    MixerRegistration(std::make_unique<SynthesizerMixture<FactorizedDenseVanilla>>()),
    MixerRegistration(std::make_unique<SynthesizerMixture<FactorizedDenseRandomVanilla>>()),
    MixerRegistration(
        std::make_unique<SynthesizerMixture<FactorizedDenseFactorizedRandomVanilla>>()),
};

}  // namespace

}  // namespace masque::nn
