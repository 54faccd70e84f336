// The register-blocked product against plain loops, at every size around a block and a strip.
#include "kernel/product/packed_product.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include <doctest/doctest.h>

#include "base/random/random.hpp"
#include "kernel/number/bfloat16.hpp"
#include "kernel/product/pack_strips.hpp"

namespace masque::test {
namespace {

using kernel::kTileRows;
using kernel::LeftOperand;
using kernel::Onto;
using kernel::Strips;

template <class T>
Matrix<T> random_matrix(Index rows, Index columns, std::uint64_t seed) {
  Matrix<T> out(rows, columns);
  std::vector<double> numbers(out.span().size());
  RandomStream(seed, "packed product").normal(0, numbers.size(), numbers.data());
  for (std::size_t i = 0; i < numbers.size(); ++i) out.span()[i] = static_cast<T>(numbers[i]);
  return out;
}

/// Σ_k a(i, k) b(k, j) in double.
template <class T>
double exact(const Matrix<T>& a, const Matrix<T>& b, Index i, Index j) {
  double sum = 0;
  for (Index k = 0; k < a.columns(); ++k) {
    sum += static_cast<double>(a.view().at(i, k)) * static_cast<double>(b.view().at(k, j));
  }
  return sum;
}

TEST_CASE_TEMPLATE("packed products of every shape, onto nothing, a chain or a sum", T, float,
                   double) {
  for (const Index rows : {1, 2, 5, 6, 7, 8, 9, 13, 20}) {
    for (const Index columns : {1, 7, 8, 15, 16, 17, 32, 47, 64, 65, 130}) {
      for (const Index depth : {1, 2, 33}) {
        CAPTURE(rows);
        CAPTURE(columns);
        CAPTURE(depth);
        const Matrix<T> a = random_matrix<T>(rows, depth, 1);
        const Matrix<T> b = random_matrix<T>(depth, columns, 2);
        const Matrix<T> start = random_matrix<T>(rows, columns, 3);
        Matrix<T> strips(kernel::strips_of<T>(columns), depth * kernel::kStripColumns<T>);
        kernel::pack<T>(b.view(), Strips<T>{strips.data(), strips.columns()});
        // The left operand in rows, in columns, and in tiles.
        Matrix<T> transposed(depth, rows);
        Matrix<T> tiles =
            Matrix<T>::zero((rows + kTileRows - 1) / kTileRows, kTileRows * depth + 3);
        for (Index i = 0; i < rows; ++i) {
          for (Index k = 0; k < depth; ++k) {
            transposed.view().at(k, i) = a.view().at(i, k);
            tiles.view().at(i / kTileRows, k * kTileRows + i % kTileRows) = a.view().at(i, k);
          }
        }
        const LeftOperand<T> lefts[] = {LeftOperand<T>::rows(a.view()),
                                        LeftOperand<T>::columns(transposed.view()),
                                        {tiles.data(), 1, kTileRows, tiles.columns()}};
        for (const Onto onto : {Onto::kNothing, Onto::kChain, Onto::kSum, Onto::kBias}) {
          Matrix<T> first;
          for (const LeftOperand<T>& left : lefts) {
            // A column more than the product has: it must stay.
            Matrix<T> c = Matrix<T>::zero(rows, columns + 1);
            for (Index i = 0; i < rows; ++i) {
              std::copy_n(start.view().row(i), columns, c.view().row(i));
              c.view().at(i, columns) = 77;
            }
            kernel::multiply_packed<T>(left, depth, {strips.data(), strips.columns()},
                                       c.view().middle_columns(0, columns), onto,
                                       onto == Onto::kBias ? start.view().row(0) : nullptr);
            const double unit = std::numeric_limits<T>::epsilon() * 8 * static_cast<double>(depth);
            double worst = 0;
            for (Index i = 0; i < rows; ++i) {
              CHECK(c.view().at(i, columns) == 77);
              for (Index j = 0; j < columns; ++j) {
                const double begun =
                    onto == Onto::kNothing
                        ? 0
                        : static_cast<double>(start.view().at(onto == Onto::kBias ? 0 : i, j));
                const double expected = begun + exact(a, b, i, j);
                worst =
                    std::max(worst, std::abs(static_cast<double>(c.view().at(i, j)) - expected));
              }
            }
            CHECK(worst <= unit * 4);
            if (first.rows() == 0) {
              first = Matrix<T>::copy(c.view());
            } else {
              CHECK(std::equal(first.span().begin(), first.span().end(), c.span().begin()));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("a row's bits do not depend on the rows and columns that are multiplied with it") {
  constexpr Index kRows = 17, kColumns = 112, kDepth = 50;
  const Matrix<float> a = random_matrix<float>(kRows, kDepth, 4);
  const Matrix<float> b = random_matrix<float>(kColumns, kDepth, 5);
  Matrix<float> strips(kernel::strips_of<float>(kColumns), kDepth * 16);
  kernel::pack_transposed<float>(b.view(), Strips<float>{strips.data(), strips.columns()});
  const Strips<const float> packed{strips.data(), strips.columns()};
  Matrix<float> whole(kRows, kColumns);
  kernel::multiply_packed(LeftOperand<float>::rows(a.view()), kDepth, packed, whole.view(),
                          Onto::kNothing);
  for (Index i = 0; i < kRows; ++i) {
    for (Index j = 0; j < kColumns; j += 16) {
      Matrix<float> one(1, 16);
      kernel::multiply_packed(LeftOperand<float>::rows(a.view().middle_rows(i, 1)), kDepth,
                              packed.from_column(j), one.view(), Onto::kNothing);
      CHECK(std::equal(one.data(), one.data() + 16, whole.view().row(i) + j));
    }
  }
}

TEST_CASE("products of pairs of bfloat16") {
  if (!kernel::has_pairs()) return;
  for (const Index rows : {1, 6, 9}) {
    for (const Index columns : {1, 16, 40, 64, 100}) {
      constexpr Index kPairs = 9;
      const Matrix<float> a = random_matrix<float>(rows, 2 * kPairs, 6);
      const Matrix<float> b = random_matrix<float>(2 * kPairs, columns, 7);
      const auto rounded = [](float x) {
        return std::bit_cast<float>(kernel::bf16_bits(x) & 0xFFFF0000U);
      };
      const auto pair = [](float low, float high) {
        return std::bit_cast<float>((kernel::bf16_bits(low) >> 16U) |
                                    (kernel::bf16_bits(high) & 0xFFFF0000U));
      };
      Matrix<float> left(rows, kPairs);
      for (Index i = 0; i < rows; ++i) {
        for (Index k = 0; k < kPairs; ++k) {
          left.view().at(i, k) = pair(a.view().at(i, 2 * k), a.view().at(i, 2 * k + 1));
        }
      }
      Matrix<float> right(kPairs, columns);
      for (Index k = 0; k < kPairs; ++k) {
        for (Index j = 0; j < columns; ++j) {
          right.view().at(k, j) = pair(b.view().at(2 * k, j), b.view().at(2 * k + 1, j));
        }
      }
      Matrix<float> strips(kernel::strips_of<float>(columns), kPairs * 16);
      kernel::pack<float>(right.view(), Strips<float>{strips.data(), strips.columns()});
      const std::vector<float> factors(static_cast<std::size_t>(rows), 0.5F);
      Matrix<float> c(rows, columns);
      kernel::multiply_packed_pairs(LeftOperand<float>::rows(left.view()), kPairs,
                                    {strips.data(), strips.columns()}, factors.data(), c.view(),
                                    Onto::kNothing);
      for (Index i = 0; i < rows; ++i) {
        for (Index j = 0; j < columns; ++j) {
          double sum = 0;
          for (Index k = 0; k < 2 * kPairs; ++k) {
            sum += static_cast<double>(rounded(a.view().at(i, k))) *
                   static_cast<double>(rounded(b.view().at(k, j)));
          }
          CHECK(std::abs(static_cast<double>(c.view().at(i, j)) - 0.5 * sum) <= 1e-4);
        }
      }
    }
  }
}

}  // namespace
}  // namespace masque::test
