// xlnet: transformer_xl, and a term of whether query and key are of the same segment.
#include <complex>

#include "base/error.hpp"
#include "nn/position/transformer_xl_tables.hpp"

namespace masque::nn {

namespace {

class Xlnet final : public PositionSchemeOf<Xlnet> {
 public:
  PositionFacts facts() const override {
    PositionFacts facts;
    facts.scores = true;
    return facts;
  }
  VariantInfo info() const override {
    return describe_position(
        "relative (hidden_size, d), content_bias (d), position_bias (d), segment_bias (d), "
        "segment_table (2, d)",
        "2 n² d + 2 n d²", "Yang et al. 2019, arXiv:1906.08237");
  }
  std::vector<PositionParameter> parameters(const PositionShape& shape) const override {
    const Index width = shape.num_attention_heads * shape.head_size;
    std::vector<PositionParameter> all = transformer_xl_parameters(shape);
    all.push_back({"segment_bias", 1, width, 0, 0.02, {}});
    all.push_back({"segment_table", 2, width, 0, 0.02, {}});
    return all;
  }

  template <class T>
  std::unique_ptr<PositionTerms<T>> make(const PositionProblem<T>& problem) const {
    require_even(name(), "hidden_size", problem.shape.hidden_size);
    const auto& queries = problem.query_segments;
    const auto& keys = problem.key_segments;
    MASQUE_CHECK(queries.empty() == keys.empty());
    MASQUE_CHECK(queries.empty() || (queries.size() == problem.places.queries.size() &&
                                     keys.size() == problem.places.keys.size()));
    std::vector<PairTables<T>> tables;
    tables.push_back(transformer_xl_tables(problem, scale(problem.shape)));
    PairTables<T>& segments = tables.emplace_back();
    segments.scale = scale(problem.shape);
    segments.row = [queries, keys](Index i, Index j) -> Index {
      if (queries.empty()) return 0;
      const bool same = queries[static_cast<std::size_t>(i)] == keys[static_cast<std::size_t>(j)];
      return same ? 0 : 1;
    };
    segments.query_bias = problem.parameters[3];
    segments.d_query_bias = gradient_of(problem, 3);
    segments.by_query = Matrix<T>::copy(problem.parameters[4]);
    segments.push = [d_table = gradient_of(problem, 4)](Index head, MatrixView<const T> d_by_query,
                                                        MatrixView<const T> /*d_by_key*/) {
      if (d_table.data == nullptr) return;
      const Index first = head * d_by_query.columns;
      for (Index r = 0; r < 2; ++r) {
        for (Index e = 0; e < d_by_query.columns; ++e) {
          d_table.at(r, first + e) += d_by_query.at(r, e);
        }
      }
    };
    return std::make_unique<PairTableTerms<T>>(std::move(tables));
  }
};

const PositionRegistration kRegistration("xlnet",
                                         [](NamedArguments&) -> std::unique_ptr<PositionScheme> {
                                           return std::make_unique<Xlnet>();
                                         });

}  // namespace

}  // namespace masque::nn
