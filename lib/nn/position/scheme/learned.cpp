// learned: a trained row of each position added to the input. Beyond the table the hierarchical
// extension, which reaches the square of its rows.
#include <complex>

#include "base/string/named_arguments.hpp"
#include "nn/position/position_scheme.hpp"
#include "tensor/table_rows.hpp"

namespace masque::nn {

namespace {

template <class T>
class LearnedTerms final : public PositionTerms<T> {
 public:
  LearnedTerms(double alpha, const PositionProblem<T>& problem)
      : alpha_(alpha),
        positions_(problem.positions.keys),
        table_(problem.parameters[0]),
        d_table_(gradient_of(problem, 0)) {}

  void input(MatrixView<T> x) const override {
    for (Index i = 0; i < x.rows; ++i) add_rows(table_, rows(i), x.row_span(i));
  }
  void input_backward(MatrixView<const T> /*x*/, MatrixView<T> d_x) override {
    for (Index i = 0; i < d_x.rows; ++i) {
      add_rows_backward<T>(d_x.row_span(i), rows(i), d_table_);
    }
  }

 private:
  TableRows rows(Index i) const {
    return table_rows(positions_[static_cast<std::size_t>(i)], table_.rows, alpha_);
  }

  double alpha_;
  std::span<const Index> positions_;
  MatrixView<const T> table_;
  MatrixView<T> d_table_;
};

class Learned final : public PositionSchemeOf<Learned> {
 public:
  explicit Learned(double alpha) : alpha_(alpha) {}

  PositionFacts facts() const override {
    PositionFacts facts;
    facts.input = true;
    facts.relative = false;
    return facts;
  }
  VariantInfo info() const override {
    return describe_position("position_embeddings (max_position_embeddings, hidden_size)", "none",
                             "Gehring et al. 2017, arXiv:1705.03122; extension: Su 2020, "
                             "kexue.fm/archives/7947");
  }
  std::vector<PositionParameter> parameters(const PositionShape& shape) const override {
    return {{"position_embeddings", shape.max_position_embeddings, shape.hidden_size, 0, 0.02, {}}};
  }
  Index position_count(Index rows) const override { return table_positions(rows, alpha_); }
  template <class T>
  std::unique_ptr<PositionTerms<T>> make(const PositionProblem<T>& problem) const {
    return std::make_unique<LearnedTerms<T>>(alpha_, problem);
  }

 private:
  double alpha_;
};

const PositionRegistration kRegistration(
    "learned", [](NamedArguments& arguments) -> std::unique_ptr<PositionScheme> {
      return std::make_unique<Learned>(arguments.number("alpha", 0.4, 0, 0.99));
    });

}  // namespace

}  // namespace masque::nn
