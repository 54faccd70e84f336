// shaw: trained rows of the clipped distance, the same for all heads, added to keys and to values.
#include <algorithm>
#include <complex>

#include "base/string/named_arguments.hpp"
#include "nn/position/pair_tables.hpp"

namespace masque::nn {

namespace {

template <class T>
class ShawTerms final : public PairTableTerms<T>, public ValueTerms<T> {
 public:
  ShawTerms(std::vector<PairTables<T>> tables, MatrixView<const T> values, MatrixView<T> d_values)
      : PairTableTerms<T>(std::move(tables)), values_(values), d_values_(d_values) {}

  ValueTerms<T>* value_terms() override { return this; }

  void add(Index /*head*/, MatrixView<const T> weights, MatrixView<T> context) const override {
    const std::vector<std::int32_t> rows = rows_of(weights);
    const std::int32_t* row = rows.data();
    for (Index i = 0; i < weights.rows; ++i) {
      for (Index j = 0; j < weights.columns; ++j) {
        const T* value = values_.row(*row++);
        for (Index e = 0; e < context.columns; ++e) {
          context.at(i, e) += weights.at(i, j) * value[e];
        }
      }
    }
  }
  void add_backward(Index /*head*/, MatrixView<const T> weights, MatrixView<const T> d_context,
                    MatrixView<T> d_weights) override {
    const std::vector<std::int32_t> rows = rows_of(weights);
    const std::int32_t* next = rows.data();
    for (Index i = 0; i < weights.rows; ++i) {
      for (Index j = 0; j < weights.columns; ++j) {
        const Index row = *next++;
        for (Index e = 0; e < d_context.columns; ++e) {
          d_weights.at(i, j) += d_context.at(i, e) * values_.at(row, e);
          if (d_values_.data != nullptr) {
            d_values_.at(row, e) += weights.at(i, j) * d_context.at(i, e);
          }
        }
      }
    }
  }

 private:
  std::vector<std::int32_t> rows_of(MatrixView<const T> pairs) const {
    std::vector<std::int32_t> rows(static_cast<std::size_t>(pairs.rows * pairs.columns));
    this->rows(0, {0, pairs.rows}, {0, pairs.columns}, rows.data());
    return rows;
  }

  MatrixView<const T> values_;
  MatrixView<T> d_values_;
};

class Shaw final : public PositionSchemeOf<Shaw> {
 public:
  explicit Shaw(Index clip) : clip_(clip) {}

  PositionFacts facts() const override {
    PositionFacts facts;
    facts.scores = true;
    facts.values = true;
    return facts;
  }
  VariantInfo info() const override {
    return describe_position("keys (2 clip + 1, head size), values (2 clip + 1, value size)",
                             "2 n² d", "Shaw et al. 2018, arXiv:1803.02155");
  }
  std::vector<PositionParameter> parameters(const PositionShape& shape) const override {
    return {{"keys", 2 * clip_ + 1, shape.head_size, 0, 0.02, {}},
            {"values", 2 * clip_ + 1, shape.value_size, 0, 0.02, {}}};
  }

  template <class T>
  std::unique_ptr<PositionTerms<T>> make(const PositionProblem<T>& problem) const {
    PairTables<T> keys;
    keys.row = distance_rows(problem.positions, [clip = clip_](Index distance) {
      return std::clamp(distance, -clip, clip) + clip;
    });
    keys.scale = scale(problem.shape);
    keys.by_query = problem.parameters[0];
    keys.d_by_query = gradient_of(problem, 0);
    std::vector<PairTables<T>> tables;
    tables.push_back(std::move(keys));
    return std::make_unique<ShawTerms<T>>(std::move(tables), problem.parameters[1],
                                          gradient_of(problem, 1));
  }

 private:
  Index clip_;
};

const PositionRegistration kRegistration(
    "shaw", [](NamedArguments& arguments) -> std::unique_ptr<PositionScheme> {
      return std::make_unique<Shaw>(arguments.count("clip", 16, 0, 1 << 20));
    });

}  // namespace

}  // namespace masque::nn
