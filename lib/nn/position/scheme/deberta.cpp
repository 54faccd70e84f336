// deberta: disentangled attention. Queries meet projected rows of the distance, and keys others.
// Both read row i − j of their table, as released models do; the paper writes j − i for the keys.
#include <algorithm>
#include <cmath>
#include <complex>

#include "base/error.hpp"
#include "base/string/named_arguments.hpp"
#include "nn/position/plain_products.hpp"
#include "nn/position/score_terms.hpp"

namespace masque::nn {

namespace {

class Deberta final : public PositionSchemeOf<Deberta> {
 public:
  Deberta(Index span, Index buckets, Index max_distance)
      : span_(span), buckets_(buckets), max_distance_(max_distance) {}

  PositionFacts facts() const override {
    PositionFacts facts;
    facts.scores = true;
    return facts;
  }
  VariantInfo info() const override {
    return describe_position(
        "relative_embeddings (2 span, hidden_size), position_key (hidden_size, d), position_query "
        "(hidden_size, d)",
        "2 n² d + 4 span d²", "He et al. 2020, arXiv:2006.03654");
  }
  std::vector<PositionParameter> parameters(const PositionShape& shape) const override {
    const Index width = shape.num_attention_heads * shape.head_size;
    return {{"relative_embeddings", 2 * span_, shape.hidden_size, 0, 0.02, {}},
            {"position_key", shape.hidden_size, width, 0, 0.02, {}},
            {"position_query", shape.hidden_size, width, 0, 0.02, {}}};
  }
  double scale(const PositionShape& shape) const override {
    return 1 / std::sqrt(3 * static_cast<double>(shape.head_size));
  }

  template <class T>
  std::unique_ptr<PositionTerms<T>> make(const PositionProblem<T>& problem) const {
    const auto& p = problem.parameters;
    DisentangledTerms<T> terms;
    terms.span = span_;
    terms.buckets = buckets_;
    terms.max_distance = max_distance_;
    terms.scale = scale(problem.shape);
    // Only rows of distances that occur: the table has those of 1,024, a sequence may be short.
    const auto part = [range = disentangled_rows(terms, problem.positions)](auto rows) {
      return rows.data == nullptr ? rows : rows.middle_rows(range.first, range.second);
    };
    // Projected here; their gradients go on to the parameters head by head.
    struct Projected {
      Matrix<T> key, query;
    };
    const auto rows_of = [&](MatrixView<const T> projection) {
      Matrix<T> out = Matrix<T>::zero(p[0].rows, projection.columns);
      add_product<T>(part(p[0]), projection, part(out.view()));
      return out;
    };
    const auto projected =
        std::make_shared<const Projected>(Projected{rows_of(p[1]), rows_of(p[2])});
    terms.position_key = projected->key.view();
    terms.position_query = projected->query.view();
    terms.projected.memory = projected;
    terms.projected.push =
        [p, part, d_rows = gradient_of(problem, 0), d_key = gradient_of(problem, 1),
         d_query = gradient_of(problem, 2), size = problem.shape.head_size](
            Index head, MatrixView<const T> d_by_query, MatrixView<const T> d_by_key) {
          add_product_gradients<T>(part(p[0]), head_columns(p[1], head, size), part(d_by_query),
                                   part(d_rows), head_columns(d_key, head, size));
          add_product_gradients<T>(part(p[0]), head_columns(p[2], head, size), part(d_by_key),
                                   part(d_rows), head_columns(d_query, head, size));
        };
    return disentangled_terms<T>(terms, problem.positions);
  }

 private:
  Index span_;
  Index buckets_;
  Index max_distance_;
};

const PositionRegistration kRegistration(
    "deberta", [](NamedArguments& arguments) -> std::unique_ptr<PositionScheme> {
      // 0: plain distances, as in the first DeBERTa.
      const Index buckets = arguments.count("position_buckets", 0, 0, 1 << 20);
      if (buckets == 1)
        throw UsageError("deberta: position_buckets is 1, expected 0 or at least 2");
      // As in the released models: 512 without buckets, else as many as there are buckets.
      const Index span = arguments.count("span", buckets > 0 ? buckets : 512, 1, 1 << 20);
      const Index max_distance = arguments.count(
          "max_relative_positions", std::max<Index>(512, buckets + 2), buckets + 2, Index{1} << 24);
      return std::make_unique<Deberta>(span, buckets, max_distance);
    });

}  // namespace

}  // namespace masque::nn
