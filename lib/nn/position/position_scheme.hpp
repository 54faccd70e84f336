// Position schemes: how a layer of attention learns where its tokens stand. Files under
// nn/position/scheme/ register them, relatives in one file.
//
// A scheme acts at one or more of these points, in this order:
//     x ← input(x)                      before the projections
//     q, k ← query_key(q, k)            before their product
//     s_ij = scale · q_i·k_j + terms    scale is the scheme's; 0: the terms are the whole score
//     a_ij ← c_ij a_ij                  after the normalizer
//     o_i = Σ_j a_ij (v_j + r_ij)       next to the values
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nn/attention/materialized_attention.hpp"
#include "nn/position/position.hpp"
#include "nn/variant.hpp"

namespace masque {
class NamedArguments;
}

namespace masque::nn {

/// The layer that a scheme serves.
struct PositionShape {
  Index hidden_size = 0;              ///< columns of the input
  Index num_attention_heads = 1;      ///< h
  Index head_size = 0;                ///< size of a head of queries and keys
  Index value_size = 0;               ///< size of a head of values
  Index max_position_embeddings = 0;  ///< rows of trained tables of positions: the trained length
  Index value_heads = 0;              ///< whose weights are multiplied; 0: num_attention_heads
};

/// A trained parameter of a scheme, a matrix (rows, columns).
struct PositionParameter {
  std::string name;   ///< names its start values and the tensor
  Index rows = 0;     ///< rows of its matrix
  Index columns = 0;  ///< columns of its matrix
  /// It starts with normal numbers of this mean and of `deviation`, or with `values`.
  double mean = 0;
  double deviation = 0;        ///< standard deviation of the start values
  std::vector<double> values;  ///< row by row, rows · columns of them; empty: drawn
};

/// One sequence for a scheme. Spans, views and positions are borrowed by what is made from it.
template <class T>
struct PositionProblem {
  PositionShape shape;  ///< shape of the layer
  /// Positions of the queries and keys of the layer; inputs are the tokens of `positions.keys`.
  PositionIds positions;
  /// In the order of PositionScheme::parameters.
  std::span<const MatrixView<const T>> parameters;
  /// Where their gradients are added; empty: none are wanted. A view without data is left out.
  std::span<const MatrixView<T>> gradients;
  /// xlnet: segments of queries and keys; empty: all one segment.
  std::span<const Index> query_segments;
  std::span<const Index> key_segments;  ///< as query_segments
  /// randomized, equal_mean: the number of the random draw, while training; nullopt: positions as
  /// they are.
  std::optional<std::uint64_t> draw;
};

/// A scheme at work on one sequence. What it does not do is left as it is: functions that do
/// nothing, terms that are null. Forward is thread-safe; backward adds to the gradients of the
/// problem and is not.
template <class T>
class PositionTerms {
 public:
  virtual ~PositionTerms() = default;
  /// `x` (S, hidden_size) becomes x′.
  virtual void input(MatrixView<T> /*x*/) const {}
  /// The gradient of input(): `x` is what input() was given; `d_x`, the gradient by
  /// x′, becomes the one by x.
  virtual void input_backward(MatrixView<const T> /*x*/, MatrixView<T> /*d_x*/) {}
  /// Changes query (T, heads · head size) and key (S, key heads · head size), in place.
  virtual void query_key(MatrixView<T> /*query*/, MatrixView<T> /*key*/) const {}
  /// The gradient of query_key(): gradients by its results become those by what it was given, in
  /// place.
  virtual void query_key_backward(MatrixView<T> /*d_query*/, MatrixView<T> /*d_key*/) {}
  /// Terms of scores, which see queries and keys after query_key(); null: none. Owned by this
  /// object.
  virtual const ScoreBias<T>* bias() const { return nullptr; }
  /// The backward pass of bias(); null: nothing is trained and no gradient goes to queries and
  /// keys. Owned by this object.
  virtual ScoreTermsGradient<T>* bias_gradient() { return nullptr; }
  /// What multiplies weights; null: none. Owned by this object.
  virtual WeightTerms<T>* weight_terms() { return nullptr; }
  /// What is added to values; null: none. Owned by this object.
  virtual ValueTerms<T>* value_terms() { return nullptr; }
};

/// What a scheme does and can.
struct PositionFacts {
  bool input = false;      ///< changes the input
  bool query_key = false;  ///< changes queries and keys
  bool scores = false;     ///< adds terms to scores
  bool weights = false;    ///< multiplies weights after the normalizer
  bool values = false;     ///< adds to values
  /// A shift of all positions changes nothing.
  bool relative = true;
  /// Tells a key on the left from the same key as far on the right.
  bool direction_aware = true;
  /// kFull: the input of a row holds later tokens. kCausal: it holds earlier ones, or scores of
  /// later keys are not meant to be read.
  MaskSupport masks = MaskSupport::kAny;
};

/// A scheme with its arguments. Immutable, thread-safe.
class PositionScheme {
 public:
  virtual ~PositionScheme() = default;
  /// What the scheme does and can.
  virtual PositionFacts facts() const = 0;
  /// Kind and name are filled in by `position_info`; `parameters`: the trained ones alone.
  virtual VariantInfo info() const = 0;
  /// The trained parameters for `shape`, in the order of PositionProblem::parameters; none unless
  /// the scheme says otherwise.
  virtual std::vector<PositionParameter> parameters(const PositionShape& shape) const;
  /// What multiplies q·k for `shape`: 1/√(head size) unless the scheme says otherwise; 0: its
  /// terms are the whole score.
  virtual double scale(const PositionShape& shape) const;
  /// How many positions it has with trained tables of `rows` rows; later ones are read as the last
  /// of them. 0: no limit, the default.
  virtual Index position_count(Index /*rows*/) const { return 0; }
  /// The scheme at work; what is made borrows it. Throws UsageError if it cannot serve the shape
  /// (odd sizes).
  virtual std::unique_ptr<PositionTerms<float>> terms(const PositionProblem<float>&) const = 0;
  /// The same in double.
  virtual std::unique_ptr<PositionTerms<double>> terms(const PositionProblem<double>&) const = 0;
  /// Forward alone, for complex steps.
  virtual std::unique_ptr<PositionTerms<std::complex<double>>> terms(
      const PositionProblem<std::complex<double>>&) const = 0;

  /// As parse_position() was given it, without arguments.
  const std::string& name() const { return name_; }

 private:
  friend std::shared_ptr<const PositionScheme> parse_position(std::string_view text);
  std::string name_;
};

/// Throws UsageError for `scheme`, which reaches `position` from 0 by `steps` rows of `size`
/// numbers from one position to the next, if these were more than 2^28 numbers.
void check_path(std::string_view scheme, Index position, Index steps, Index size);

/// Checks (MASQUE_CHECK) that parameters and gradients of `problem` have the
/// shapes that `scheme` declares.
template <class T>
void check_position_problem(const PositionScheme& scheme, const PositionProblem<T>& problem);

/// A scheme whose template `make<T>(const PositionProblem<T>&)` gives the terms:
/// Scheme is the derived class.
template <class Scheme>
class PositionSchemeOf : public PositionScheme {
 public:
  /// The terms that the derived class makes for `p`, after check_position_problem().
  std::unique_ptr<PositionTerms<float>> terms(const PositionProblem<float>& p) const final {
    check_position_problem(self(), p);
    return self().make(p);
  }
  /// The same in double, for `p`.
  std::unique_ptr<PositionTerms<double>> terms(const PositionProblem<double>& p) const final {
    check_position_problem(self(), p);
    return self().make(p);
  }
  /// The same for derivatives by complex step, for `p`.
  std::unique_ptr<PositionTerms<std::complex<double>>> terms(
      const PositionProblem<std::complex<double>>& p) const final {
    check_position_problem(self(), p);
    return self().make(p);
  }

 private:
  const Scheme& self() const { return static_cast<const Scheme&>(*this); }
};

/// The scheme of `text`: "rope_yarn(factor=8, length=512)"; a bare name has its standard arguments.
/// Throws UsageError that names what is possible.
std::shared_ptr<const PositionScheme> parse_position(std::string_view text);

/// The names of all registered schemes, sorted.
std::vector<std::string> position_names();

/// A row of `variants` for the scheme called `name`, with standard arguments. Throws
/// UsageError for another name.
VariantInfo position_info(std::string_view name);

/// A row of `variants` as `PositionScheme::info` gives it: `trained` parameters, `cost` and
/// `source` of a VariantInfo; the rest is empty.
VariantInfo describe_position(std::string_view trained, std::string_view cost,
                              std::string_view source);

/// How the parameters of `scheme` for `shape` start: Philox streams of `seed`, one per name. T is
/// float, double or std::complex<double>.
template <class T>
std::vector<Matrix<T>> start_position(const PositionScheme& scheme, const PositionShape& shape,
                                      std::uint64_t seed);

/// Adds a scheme at program start.
struct PositionRegistration {
  /// Makes the scheme; asks `NamedArguments` for the arguments it knows.
  using Make = std::unique_ptr<PositionScheme> (*)(NamedArguments&);
  /// Adds the scheme called `name`, which `make` makes.
  PositionRegistration(std::string_view name, Make make);
};

/// Where the gradient of parameter `k` of `problem` is added; without data if it is not wanted.
template <class T>
MatrixView<T> gradient_of(const PositionProblem<T>& problem, std::size_t k) {
  return problem.gradients.empty() ? MatrixView<T>() : problem.gradients[k];
}

/// Throws UsageError unless `size` is even; the message names `scheme` and `what` has that size.
void require_even(std::string_view scheme, std::string_view what, Index size);

}  // namespace masque::nn
