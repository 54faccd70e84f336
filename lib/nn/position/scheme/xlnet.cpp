// xlnet: transformer_xl, and a term of whether query and key are of the same segment.
#include <complex>

#include "nn/position/transformer_xl_terms.hpp"

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
    XlnetTerms<T> terms = transformer_xl_terms(problem, scale(problem.shape));
    terms.segment_bias = problem.parameters[3];
    terms.segment_table = problem.parameters[4];
    terms.query_segments = problem.query_segments;
    terms.key_segments = problem.key_segments;
    terms.d_segment_bias = gradient_of(problem, 3);
    terms.d_segment_table = gradient_of(problem, 4);
    return xlnet_terms<T>(terms, problem.positions);
  }
};

const PositionRegistration kRegistration("xlnet",
                                         [](NamedArguments&) -> std::unique_ptr<PositionScheme> {
                                           return std::make_unique<Xlnet>();
                                         });

}  // namespace

}  // namespace masque::nn
