// What products with packed weights promise beyond their values.
#include "kernel/product/linear.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/processor/processor.hpp"
#include "base/random/random.hpp"
#include "kernel/number/bfloat16.hpp"
#include "kernel/parallel.hpp"
#include "kernel/product/strip_weights.hpp"
#include "kernel/softmax/log_probability.hpp"
#include "support/near.hpp"
#include "tensor/row_stack.hpp"

namespace masque::test {
namespace {

using kernel::Activation;
using kernel::Linear;
using kernel::Precision;

template <class T = float>
Matrix<T> random_matrix(Index rows, Index columns, std::uint64_t item) {
  Matrix<T> result(rows, columns);
  std::vector<double> values(result.span().size());
  RandomStream(3, "linear test", item).normal(0, values.size(), values.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    result.span()[i] = static_cast<T>(static_cast<float>(values[i]));
  }
  return result;
}

bool same_bits(MatrixView<const float> a, MatrixView<const float> b) {
  bool same = a.rows == b.rows && a.columns == b.columns;
  for (Index i = 0; same && i < a.rows; ++i) {
    same =
        std::memcmp(a.row(i), b.row(i), sizeof(float) * static_cast<std::size_t>(a.columns)) == 0;
  }
  return same;
}

struct Threads {
  explicit Threads(int count) { kernel::set_threads(count); }
  ~Threads() { kernel::set_threads(0); }
};

/// While it lives, weights are packed for this product.
struct Product {
  explicit Product(kernel::ProductChoice choice) { kernel::choose_product(choice); }
  ~Product() { kernel::choose_product(kernel::ProductChoice::kByShape); }
};

TEST_CASE(
    "our product and oneDNN's are near each other, and a row is the same "
    "in any batch") {
  using kernel::ProductChoice;
  for (const auto precision : {Precision::kF32, Precision::kBf16}) {
    const Matrix<float> weight = random_matrix(200, 500, 1), bias = random_matrix(1, 200, 2);
    const Matrix<float> x = random_matrix(70, 500, 3);
    const MatrixView<const float> view = weight.view();
    std::vector<std::vector<double>> results;
    for (const auto choice : {ProductChoice::kOurs, ProductChoice::kOneDnn}) {
      const Product product(choice);
      const Linear<float> linear(std::span(&view, 1), bias.span(), precision);
      Matrix<float> all(70, 200);
      linear.forward(x.view(), all.view());
      const Matrix<float>& expected = all;
      for (const Index row : {0, 33, 69}) {
        Matrix<float> y(1, 200);
        linear.forward(x.view().middle_rows(row, 1), y.view());
        CHECK(same_bits(std::as_const(y).view(), expected.view().middle_rows(row, 1)));
      }
      for (const Index rows : {2, 6, 7, 8, 9}) {
        Matrix<float> y(rows, 200);
        linear.forward(x.view().middle_rows(11, rows), y.view());
        CHECK(same_bits(std::as_const(y).view(), expected.view().middle_rows(11, rows)));
      }
      results.emplace_back(all.span().begin(), all.span().end());
    }
    CHECK(far_off(results[0], results[1], 8 * 500 * 0x1p-24, 0) == "");
  }
}

TEST_CASE(
    "which product multiplies depends on instruction set and shape, "
    "unless one is chosen") {
  const bool below = instruction_set() < InstructionSet::kAvx512;
  const bool avx512 = instruction_set() == InstructionSet::kAvx512;
  struct Case {
    Index outputs, inputs;
    bool narrow;
  };
  for (const Case& c : {Case{1, 1, true},
                        {16, 50000, true},
                        {256, 256, true},
                        {257, 1, false},
                        {768, 768, false}}) {
    CAPTURE(c.outputs);
    CHECK(kernel::StripWeights::preferred(c.outputs, c.inputs, Precision::kF32) ==
          (below || (avx512 && c.narrow)));
    CHECK(kernel::StripWeights::preferred(c.outputs, c.inputs, Precision::kBf16) == below);
  }
  {
    const Product product(kernel::ProductChoice::kOurs);
    CHECK(kernel::StripWeights::preferred(768, 768, Precision::kF32));
  }
  const Product product(kernel::ProductChoice::kFewRows);
  CHECK(kernel::StripWeights::preferred(50257, 768, Precision::kF32));
  CHECK(kernel::StripWeights::preferred(768, 768, Precision::kBf16) == below);
}

/// Whole numbers with scales, and with minima if it has some.
class Codes final : public RowSource {
 public:
  Codes(Index rows, Index columns, Index part, bool minima, std::uint64_t item)
      : rows_(rows), columns_(columns), part_(part), minima_(minima) {
    const Index parts = columns / part;
    RandomStream random(5, "codes", item);
    codes_.resize(static_cast<std::size_t>(rows * columns));
    std::vector<double> numbers(codes_.size());
    random.normal(0, numbers.size(), numbers.data());
    for (std::size_t i = 0; i < codes_.size(); ++i)
      codes_[i] = static_cast<std::int8_t>(std::clamp(numbers[i] * 40, -128.0, 127.0));
    scales_ = random_matrix(rows, parts, item + 1);
    minimum_ = minima ? random_matrix(rows, parts, item + 2) : Matrix<float>::zero(rows, parts);
  }
  Index rows() const override { return rows_; }
  Index columns() const override { return columns_; }
  Index part() const override { return part_; }
  bool has_minima() const override { return minima_; }
  void read(Index first, MatrixView<float> out) const override {
    for (Index i = 0; i < out.rows; ++i) {
      for (Index k = 0; k < columns_; ++k) {
        const float product = scales_.view().at(first + i, k / part_) *
                              static_cast<float>(codes_[index(first + i, k)]);
        out.at(i, k) = product - minimum_.view().at(first + i, k / part_);
      }
    }
  }
  void read_codes(Index first, Index count, const RowCodes& out) const override {
    const Index parts = columns_ / part_;
    std::copy_n(codes_.begin() + first * columns_, count * columns_, out.codes.begin());
    std::copy_n(scales_.view().row(first), count * parts, out.scales.begin());
    std::copy_n(minimum_.view().row(first), count * parts, out.minima.begin());
  }

 private:
  std::size_t index(Index row, Index column) const {
    return static_cast<std::size_t>(row * columns_ + column);
  }
  Index rows_, columns_, part_;
  bool minima_;
  std::vector<std::int8_t> codes_;
  Matrix<float> scales_, minimum_;
};

/// Whether products of the narrow and the wide form of `weights` have the same bits.
bool narrow_is_wide(const RowSource& weights) {
  const kernel::StripWeights wide(weights, Precision::kF32);
  const auto narrow = kernel::StripWeights::narrow(weights);
  if (!narrow) return false;
  const Matrix<float> x = random_matrix(131, wide.inputs(), 9);
  for (const Index rows : {1, 2, 7, 131}) {
    for (const Index first : {0, 32}) {
      const Index columns = wide.outputs() - first;
      Matrix<float> a(rows, columns), b(rows, columns);
      wide.multiply(x.view().middle_rows(0, rows), first, a.view());
      narrow->multiply(x.view().middle_rows(0, rows), first, b.view());
      if (!same_bits(std::as_const(a).view(), std::as_const(b).view())) return false;
    }
  }
  return true;
}

TEST_CASE(
    "weights in two bytes and in one have the products of the same "
    "floats, bit for bit") {
  for (const Index outputs : {33, 64, 200}) {
    for (const Index inputs : {32, 384, 1056}) {
      CAPTURE(outputs);
      CAPTURE(inputs);
      Matrix<float> weight = random_matrix(outputs, inputs, 1);
      const auto floats = std::make_shared<RowsInMemory>(weight.view());
      CHECK_FALSE(kernel::StripWeights::narrow(*floats));
      // The source reads what then stands there.
      kernel::round_row_to_bf16(weight.data(), outputs * inputs, weight.data());
      CHECK(narrow_is_wide(*floats));
      const auto plain = std::make_shared<Codes>(outputs, inputs, 32, false, 20),
                 halves = std::make_shared<Codes>(48, inputs, 16, false, 30),
                 minima = std::make_shared<Codes>(outputs, inputs, 32, true, 40);
      CHECK(narrow_is_wide(*plain));
      CHECK(narrow_is_wide(*minima));
      // Stacks: parts of 16 and 32, with minima and without; with floats all are read as floats.
      CHECK(narrow_is_wide(RowStack({plain, halves, minima})));
      CHECK(RowStack({plain, floats}).part() == 0);
    }
  }
}

TEST_CASE(
    "weights that are read are the weights in memory, and an error of "
    "reading is thrown") {
  class Bad final : public RowSource {
   public:
    Index rows() const override { return 600; }
    Index columns() const override { return 512; }
    void read(Index first, MatrixView<float> out) const override {
      if (first + out.rows > 300) throw InputError("row 299");
      for (Index i = 0; i < out.rows; ++i) std::fill_n(out.row(i), out.columns, 1.0F);
    }
  };
  const auto bad = std::make_shared<Bad>();
  for (const auto precision : {Precision::kF32, Precision::kBf16})
    CHECK_THROWS_AS(Linear<float>(bad, {}, precision), InputError);

  const Matrix<float> one = random_matrix(600, 512, 1), two = random_matrix(77, 512, 2);
  const auto first = std::make_shared<RowsInMemory>(one.view()),
             second = std::make_shared<RowsInMemory>(two.view());
  const auto stack =
      std::make_shared<RowStack>(std::vector<std::shared_ptr<const RowSource>>{first, second});
  const std::array<MatrixView<const float>, 2> views{one.view(), two.view()};
  const Matrix<float> x = random_matrix(140, 512, 3), bias = random_matrix(1, 677, 4);
  for (const auto precision : {Precision::kF32, Precision::kBf16}) {
    const auto product = [&](const Linear<float>& linear) {
      Matrix<float> y(140, 677);
      linear.forward(x.view(), y.view());
      return y;
    };
    using kernel::WeightStorage;
    const auto stored = [&](WeightStorage storage) {
      return product({stack, bias.span(), precision, Activation::kTanh, storage});
    };
    const Matrix<float> in_memory = product({views, bias.span(), precision, Activation::kTanh});
    CHECK(same_bits(in_memory.view(), stored(WeightStorage::kPacked).view()));
    // Weights that are read for each product have the results of our own product.
    CHECK(
        same_bits(stored(WeightStorage::kStrips).view(), stored(WeightStorage::kStreamed).view()));
  }
  const Linear<float> broken(bad, {}, Precision::kF32, Activation::kNone,
                             kernel::WeightStorage::kStreamed);
  Matrix<float> y(140, 600);
  CHECK_THROWS_AS(broken.forward(x.view(), y.view()), InputError);
}

TEST_CASE(
    "a row's result does not depend on the other rows, their number, "
    "gaps or threads") {
  for (const auto precision : {Precision::kF32, Precision::kBf16}) {
    for (const auto& sizes : std::vector<std::pair<Index, Index>>{
             {768, 768}, {3072, 200}, {64, 2304}, {37, 130}, {63, 80}, {6144, 130}, {1, 1}}) {
      const auto& inputs = sizes.first;
      const auto& outputs = sizes.second;
      CAPTURE(inputs);
      CAPTURE(outputs);
      const Matrix<float> weight = random_matrix(outputs, inputs, 1);
      const Matrix<float> bias = random_matrix(1, outputs, 2);
      const Matrix<float> x = random_matrix(200, inputs + 3, 3);
      const auto gaps = x.view().middle_columns(2, inputs);
      const MatrixView<const float> view = weight.view();
      const Linear<float> linear(std::span(&view, 1), bias.span(), precision, Activation::kTanh);
      Matrix<float> all(200, outputs);
      linear.forward(gaps, all.view());
      for (const int count : {1, 2, 3}) {
        const Threads threads(count);
        for (const Index rows : {1, 2, 7, 8, 17, 63, 64, 65, 130, 200}) {
          CAPTURE(rows);
          const Matrix<float> dense = Matrix<float>::copy(gaps.middle_rows(200 - rows, rows));
          Matrix<float> y(rows, outputs + 5);
          linear.forward(dense.view(), y.view().middle_columns(4, outputs));
          const Matrix<float>& found = y;
          const Matrix<float>& expected = all;
          CHECK(same_bits(found.view().middle_columns(4, outputs),
                          expected.view().middle_rows(200 - rows, rows)));
        }
      }
    }
  }
}

TEST_CASE("stacked weights are one matrix") {
  for (const auto precision : {Precision::kF32, Precision::kBf16}) {
    const Matrix<float> weight = random_matrix(300, 64, 1);
    const std::vector<MatrixView<const float>> parts = {weight.view().middle_rows(0, 100),
                                                        weight.view().middle_rows(100, 1),
                                                        weight.view().middle_rows(101, 199)};
    const MatrixView<const float> view = weight.view();
    const Matrix<float> x = random_matrix(9, 64, 3);
    Matrix<float> stacked(9, 300), whole(9, 300);
    Linear<float>(parts, {}, precision).forward(x.view(), stacked.view());
    Linear<float>(std::span(&view, 1), {}, precision).forward(x.view(), whole.view());
    CHECK(same_bits(stacked.view(), whole.view()));
  }
}

TEST_CASE("bf16 rounds the operands and nothing else") {
  const Matrix<float> weight = random_matrix(70, 50, 1), x = random_matrix(5, 50, 2);
  const auto round = [](const Matrix<float>& from) {
    Matrix<float> to(from.rows(), from.columns());
    for (std::size_t i = 0; i < from.span().size(); ++i) {
      // Eight significant bits, by way of an exact sum.
      int exponent = 0;
      const double mantissa = std::frexp(static_cast<double>(from.span()[i]), &exponent);
      to.span()[i] = static_cast<float>(std::ldexp(std::nearbyint(mantissa * 256) / 256, exponent));
    }
    return to;
  };
  const Matrix<float> rounded_weight = round(weight), rounded_x = round(x);
  const MatrixView<const float> view = weight.view(), rounded_view = rounded_weight.view();
  Matrix<float> found(5, 70), expected(5, 70);
  Linear<float>(std::span(&view, 1), {}, Precision::kBf16).forward(x.view(), found.view());
  Linear<float>(std::span(&rounded_view, 1), {}, Precision::kF32)
      .forward(rounded_x.view(), expected.view());
  const std::vector<double> a(found.span().begin(), found.span().end());
  const std::vector<double> b(expected.span().begin(), expected.span().end());
  CHECK(far_off(a, b, 8 * std::sqrt(50.0) * 0x1p-24, 0x1p-20) == "");
}

TEST_CASE("columns of a product are those of the whole") {
  const Matrix<float> weight = random_matrix(700, 48, 1), x = random_matrix(20, 48, 2);
  const MatrixView<const float> view = weight.view();
  const Linear<float> linear(std::span(&view, 1), {}, Precision::kF32);
  Matrix<float> all(20, 700), part(20, 256), last(20, 60);
  linear.forward(x.view(), all.view());
  linear.forward_columns(128, x.view(), part.view());
  linear.forward_columns(640, x.view(), last.view());
  const Matrix<float>& expected = all;
  CHECK(same_bits(part.view(), expected.view().middle_columns(128, 256)));
  CHECK(same_bits(last.view(), expected.view().middle_columns(640, 60)));
}

TEST_CASE("NaN and infinity stay in their rows") {
  const Matrix<float> weight = random_matrix(40, 30, 1);
  const MatrixView<const float> view = weight.view();
  const Linear<float> linear(std::span(&view, 1), {}, Precision::kF32, Activation::kGelu);
  Matrix<float> x = random_matrix(3, 30, 2), y(3, 40);
  x.view().at(1, 7) = std::nanf("");
  linear.forward(x.view(), y.view());
  for (Index j = 0; j < 40; ++j) {
    CHECK(std::isfinite(y.view().at(0, j)));
    CHECK(std::isnan(y.view().at(1, j)));
    CHECK(std::isfinite(y.view().at(2, j)));
  }
}

/// log softmax(x Wᵀ + b) at the targets, by long double sums over all logits.
std::vector<double> dense_log_probabilities(const Matrix<float>& x, const Matrix<float>& weight,
                                            const Matrix<float>& bias, double scale,
                                            std::span<const TokenId> targets) {
  std::vector<double> result;
  for (Index i = 0; i < x.rows(); ++i) {
    std::vector<double> logits;
    for (Index j = 0; j < weight.rows(); ++j) {
      double sum = static_cast<double>(bias.data()[j]);
      for (Index k = 0; k < x.columns(); ++k) {
        sum += static_cast<double>(x.view().at(i, k)) * static_cast<double>(weight.view().at(j, k));
      }
      logits.push_back(scale * sum);
    }
    const double most = *std::max_element(logits.begin(), logits.end());
    long double sum = 0;
    for (const double logit : logits) sum += std::exp(static_cast<long double>(logit - most));
    result.push_back(logits[static_cast<std::size_t>(targets[static_cast<std::size_t>(i)])] - most -
                     static_cast<double>(std::log(sum)));
  }
  return result;
}

TEST_CASE(
    "log-probabilities are those of all logits at once, for any number "
    "of rows and threads") {
  for (const Index vocabulary : {1, 7, 1024, 2500}) {
    CAPTURE(vocabulary);
    const Matrix<float> weight = random_matrix(vocabulary, 32, 1);
    const Matrix<float> bias = random_matrix(1, vocabulary, 2), x = random_matrix(100, 32, 3);
    const MatrixView<const float> view = weight.view();
    const Linear<float> head(std::span(&view, 1), bias.span(), Precision::kF32);
    std::vector<TokenId> targets;
    for (Index i = 0; i < 100; ++i) targets.push_back(static_cast<TokenId>(i * 7919 % vocabulary));
    std::vector<double> all(100);
    kernel::log_probability_forward(x.view(), head, 1.5, targets, all);
    CHECK(far_off(all, dense_log_probabilities(x, weight, bias, 1.5, targets), 2e-5, 1e-6) == "");
    if (vocabulary > 1) {
      // Without one token: as if its bias were far below.
      for (const TokenId excluded : {TokenId{1}, static_cast<TokenId>(vocabulary - 1)}) {
        Matrix<float> lower = Matrix<float>::copy(bias.view());
        lower.view().at(0, excluded) = -1e4F;
        std::vector<TokenId> others = targets;
        for (TokenId& target : others) target = target == excluded ? 0 : target;
        kernel::log_probability_forward(x.view(), head, 1.5, others, all, excluded);
        CHECK(far_off(all, dense_log_probabilities(x, weight, lower, 1.5, others), 2e-5, 1e-6) ==
              "");
      }
      kernel::log_probability_forward(x.view(), head, 1.5, targets, all);
    }
    for (const int count : {1, 2, 3}) {
      const Threads threads(count);
      for (const std::size_t rows : {1U, 10U, 65U}) {
        std::vector<double> some(rows);
        kernel::log_probability_forward(x.view().middle_rows(0, static_cast<Index>(rows)), head,
                                        1.5, std::span<const TokenId>(targets).first(rows), some);
        CHECK(std::equal(some.begin(), some.end(), all.begin()));
      }
    }
  }
}

TEST_CASE("log-probabilities are at most 0, whatever the scale") {
  auto weight = Matrix<float>::zero(3, 1);
  weight.view().at(1, 0) = 1;
  Matrix<float> x(1, 1);
  const MatrixView<const float> view = weight.view();
  const Linear<float> head(std::span(&view, 1), {}, Precision::kF32);
  for (const double scale : {0.7, 0.1, 1 / std::sqrt(512.0)}) {
    CAPTURE(scale);
    x.view().at(0, 0) = 2000;
    std::vector<double> out(1);
    kernel::log_probability_forward<float>(x.view(), head, scale, std::vector<TokenId>{1}, out);
    CHECK(out[0] == 0);
  }
}

}  // namespace
}  // namespace masque::test
