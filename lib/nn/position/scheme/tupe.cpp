// tupe: positions have projections of their own: (p_i U^Q)·(p_j U^K) is added to x_i W^Q · x_j W^K,
// both divided by √(2d). relative=true adds the buckets of t5 (TUPE-R); cls=true unties the token
// at position 0 ([CLS]): its terms, and those of others with it, are one trained number each. The
// paper's code also normalises p; its formula, and this, do not.
#include <cmath>
#include <complex>

#include "base/string/named_arguments.hpp"
#include "nn/position/bias_terms.hpp"
#include "nn/position/buckets.hpp"
#include "nn/position/plain_products.hpp"
#include "tensor/table_rows.hpp"

namespace masque::nn {

namespace {

constexpr Index kBuckets = 32;
constexpr Index kMaxDistance = 128;

struct TupeSettings {
  double alpha = 0.4;
  bool relative = false;
  bool cls = false;
};

/// Parameters: position_embeddings, position_query, position_key; then, where wanted,
/// relative_attention_bias and cls.
template <class T>
class TupeTerms final : public PositionTerms<T>, public ScoreBias<T>, public ScoreTermsGradient<T> {
 public:
  TupeTerms(const TupeSettings& settings, double scale, const PositionProblem<T>& problem)
      : settings_(settings),
        scale_(static_cast<T>(scale)),
        problem_(problem),
        query_rows_(rows_of(problem.positions.queries)),
        key_rows_(rows_of(problem.positions.keys)),
        query_(product_of<T>(std::as_const(query_rows_).view(), problem.parameters[1])),
        key_(product_of<T>(std::as_const(key_rows_).view(), problem.parameters[2])) {}

  const ScoreBias<T>* bias() const override { return this; }
  ScoreTermsGradient<T>* bias_gradient() override { return this; }

  std::unique_ptr<HeadBias<T>> head(Index head, MatrixView<const T> /*query*/,
                                    MatrixView<const T> /*key*/) const override {
    return std::make_unique<PairBias<T>>(
        [this, head](Index i, Index j) { return term(head, i, j); });
  }

  void backward(Index head, MatrixView<const T> /*query*/, MatrixView<const T> /*key*/,
                MatrixView<const T> d_scores, MatrixView<T> /*d_query*/,
                MatrixView<T> /*d_key*/) override {
    const Index size = problem_.shape.head_size;
    const MatrixView<const T> q = head_columns(std::as_const(query_).view(), head, size);
    const MatrixView<const T> k = head_columns(std::as_const(key_).view(), head, size);
    Matrix<T> d_q = Matrix<T>::zero(q.rows, size);
    Matrix<T> d_k = Matrix<T>::zero(k.rows, size);
    const MatrixView<T> d_bias = settings_.relative ? gradient_of(problem_, 3) : MatrixView<T>();
    for (Index i = 0; i < q.rows; ++i) {
      for (Index j = 0; j < k.rows; ++j) {
        const T& d = d_scores.at(i, j);
        if (const Index number = untied(i, j); number >= 0) {
          const MatrixView<T> d_cls = gradient_of(problem_, cls_at());
          if (d_cls.data != nullptr) d_cls.at(number, head) += d;
          continue;
        }
        for (Index e = 0; e < size; ++e) {
          d_q.view().at(i, e) += scale_ * d * k.at(j, e);
          d_k.view().at(j, e) += scale_ * d * q.at(i, e);
        }
        if (d_bias.data != nullptr) d_bias.at(bucket(i, j), head) += d;
      }
    }
    push(head, 1, problem_.positions.queries, query_rows_, d_q);
    push(head, 2, problem_.positions.keys, key_rows_, d_k);
  }

 private:
  std::size_t cls_at() const { return settings_.relative ? 4 : 3; }
  Index query_position(Index i) const {
    return problem_.positions.queries[static_cast<std::size_t>(i)];
  }
  Index key_position(Index j) const { return problem_.positions.keys[static_cast<std::size_t>(j)]; }
  Index bucket(Index i, Index j) const {
    return t5_bucket(key_position(j) - query_position(i), kBuckets, kMaxDistance, true);
  }
  /// Which of the two numbers of [CLS] stands for a pair; −1: none.
  Index untied(Index i, Index j) const {
    if (!settings_.cls) return -1;
    return query_position(i) == 0 ? 0 : key_position(j) == 0 ? 1 : -1;
  }
  TableRows table_rows_of(Index position) const {
    return table_rows(position, problem_.parameters[0].rows, settings_.alpha);
  }
  Matrix<T> rows_of(std::span<const Index> positions) const {
    Matrix<T> out = Matrix<T>::zero(std::ssize(positions), problem_.shape.hidden_size);
    Index i = 0;
    for (const Index position : positions) {
      add_rows(problem_.parameters[0], table_rows_of(position), out.view().row_span(i++));
    }
    return out;
  }

  T term(Index head, Index i, Index j) const {
    if (const Index number = untied(i, j); number >= 0) {
      return problem_.parameters[cls_at()].at(number, head);
    }
    const Index size = problem_.shape.head_size;
    T sum{};
    for (Index d = head * size; d < (head + 1) * size; ++d) {
      sum += query_.view().at(i, d) * key_.view().at(j, d);
    }
    sum *= scale_;
    if (settings_.relative) sum += problem_.parameters[3].at(bucket(i, j), head);
    return sum;
  }

  /// From the gradient of the projected positions of a head to those of projection k and table.
  void push(Index head, std::size_t k, std::span<const Index> positions, const Matrix<T>& rows,
            const Matrix<T>& d_projected) {
    const Index size = problem_.shape.head_size;
    Matrix<T> d_rows = Matrix<T>::zero(rows.rows(), rows.columns());
    add_product_gradients<T>(rows.view(), head_columns(problem_.parameters[k], head, size),
                             d_projected.view(), d_rows.view(),
                             head_columns(gradient_of(problem_, k), head, size));
    Index i = 0;
    for (const Index position : positions) {
      add_rows_backward<T>(d_rows.view().row_span(i++), table_rows_of(position),
                           gradient_of(problem_, 0));
    }
  }

  TupeSettings settings_;
  T scale_;
  PositionProblem<T> problem_;
  Matrix<T> query_rows_, key_rows_;  // p of each query and key
  Matrix<T> query_, key_;            // projected
};

class Tupe final : public PositionSchemeOf<Tupe> {
 public:
  explicit Tupe(const TupeSettings& settings) : settings_(settings) {}

  PositionFacts facts() const override {
    PositionFacts facts;
    facts.scores = true;
    facts.relative = false;
    return facts;
  }
  VariantInfo info() const override {
    return describe_position(
        "position_embeddings (max_position_embeddings, hidden_size), position_query (hidden_size, "
        "d), position_key (hidden_size, d), with relative relative_attention_bias (32, heads), "
        "with cls cls (2, heads)",
        "n² d + 2 n d²", "Ke et al. 2020, arXiv:2006.15595");
  }
  std::vector<PositionParameter> parameters(const PositionShape& shape) const override {
    const Index heads = shape.num_attention_heads;
    const Index width = heads * shape.head_size;
    std::vector<PositionParameter> all = {
        {"position_embeddings", shape.max_position_embeddings, shape.hidden_size, 0, 0.02, {}},
        {"position_query", shape.hidden_size, width, 0, 0.02, {}},
        {"position_key", shape.hidden_size, width, 0, 0.02, {}}};
    if (settings_.relative) {
      all.push_back({"relative_attention_bias", kBuckets, heads, 0, 0.02, {}});
    }
    if (settings_.cls) all.push_back({"cls", 2, heads, 0, 0.02, {}});
    return all;
  }
  double scale(const PositionShape& shape) const override {
    return 1 / std::sqrt(2 * static_cast<double>(shape.head_size));
  }
  Index position_count(Index rows) const override { return table_positions(rows, settings_.alpha); }
  template <class T>
  std::unique_ptr<PositionTerms<T>> make(const PositionProblem<T>& problem) const {
    return std::make_unique<TupeTerms<T>>(settings_, scale(problem.shape), problem);
  }

 private:
  TupeSettings settings_;
};

const PositionRegistration kRegistration(
    "tupe", [](NamedArguments& arguments) -> std::unique_ptr<PositionScheme> {
      TupeSettings settings;
      settings.relative = arguments.flag("relative", false);
      settings.cls = arguments.flag("cls", false);
      settings.alpha = arguments.number("alpha", settings.alpha, 0, 0.99);
      return std::make_unique<Tupe>(settings);
    });

}  // namespace

}  // namespace masque::nn
