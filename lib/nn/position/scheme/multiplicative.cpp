// multiplicative: the input times 1 + p, or times p, of a trained row p of each position. An input
// of zeros stays one.
#include <array>
#include <complex>

#include "base/string/named_arguments.hpp"
#include "nn/position/position_scheme.hpp"
#include "tensor/table_rows.hpp"

namespace masque::nn {

namespace {

template <class T>
class MultiplicativeTerms final : public PositionTerms<T> {
 public:
  MultiplicativeTerms(double constant, double alpha, const PositionProblem<T>& problem)
      : alpha_(alpha),
        positions_(problem.positions.keys),
        table_(problem.parameters[0]),
        d_table_(gradient_of(problem, 0)),
        factors_(std::ssize(positions_), problem.shape.hidden_size) {
    std::fill_n(factors_.data(), factors_.rows() * factors_.columns(), static_cast<T>(constant));
    for (Index i = 0; i < factors_.rows(); ++i) {
      add_rows(table_, rows(i), factors_.view().row_span(i));
    }
  }

  void input(MatrixView<T> x) const override { multiply(x); }
  void input_backward(MatrixView<const T> x, MatrixView<T> d_x) override {
    Matrix<T> d_factors(x.rows, x.columns);
    for (Index i = 0; i < x.rows; ++i) {
      for (Index d = 0; d < x.columns; ++d) d_factors.view().at(i, d) = d_x.at(i, d) * x.at(i, d);
      add_rows_backward<T>(d_factors.view().row_span(i), rows(i), d_table_);
    }
    multiply(d_x);
  }

 private:
  TableRows rows(Index i) const {
    return table_rows(positions_[static_cast<std::size_t>(i)], table_.rows, alpha_);
  }
  void multiply(MatrixView<T> x) const {
    for (Index i = 0; i < x.rows; ++i) {
      for (Index d = 0; d < x.columns; ++d) x.at(i, d) *= factors_.view().at(i, d);
    }
  }

  double alpha_;
  std::span<const Index> positions_;
  MatrixView<const T> table_;
  MatrixView<T> d_table_;
  Matrix<T> factors_;
};

class Multiplicative final : public PositionSchemeOf<Multiplicative> {
 public:
  Multiplicative(bool one_plus, double alpha) : one_plus_(one_plus), alpha_(alpha) {}

  PositionFacts facts() const override {
    PositionFacts facts;
    facts.input = true;
    facts.relative = false;
    return facts;
  }
  VariantInfo info() const override {
    return describe_position("position_embeddings (max_position_embeddings, hidden_size)", "n d",
                             "Su 2021, kexue.fm/archives/8130; bert4keras");
  }
  std::vector<PositionParameter> parameters(const PositionShape& shape) const override {
    return {{"position_embeddings",
             shape.max_position_embeddings,
             shape.hidden_size,
             one_plus_ ? 0.0 : 1.0,
             0.02,
             {}}};
  }
  Index position_count(Index rows) const override { return table_positions(rows, alpha_); }
  template <class T>
  std::unique_ptr<PositionTerms<T>> make(const PositionProblem<T>& problem) const {
    return std::make_unique<MultiplicativeTerms<T>>(one_plus_ ? 1 : 0, alpha_, problem);
  }

 private:
  bool one_plus_;
  double alpha_;
};

const PositionRegistration kRegistration(
    "multiplicative", [](NamedArguments& arguments) -> std::unique_ptr<PositionScheme> {
      static constexpr std::array<std::string_view, 2> kForms = {"one_plus", "plain"};
      const bool one_plus = arguments.choice("form", kForms[0], kForms) == kForms[0];
      return std::make_unique<Multiplicative>(one_plus, arguments.number("alpha", 0.4, 0, 0.99));
    });

}  // namespace

}  // namespace masque::nn
