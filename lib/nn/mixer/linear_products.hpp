// Attention without a normalizer, from products that are put together from right to left:
//     out_i = q_i Σ_j k_jᵀ v_j        over the tokens j in reach of i
// It costs as much as there are tokens, not pairs.
#pragma once

#include "base/divide.hpp"
#include "nn/mixer/parts.hpp"

namespace masque::nn::mixing {

/// Which tokens are in reach of a token.
enum class Reach {
  kAll,           ///< all tokens
  kUpToOwn,       ///< 0 … i
  kChunksBefore,  ///< those of the chunks in front of its own
};

/// Pairs (i, j) with j > i of the matrix `a` become 0.
template <class T>
void hide_following(MatrixView<T> a) {
  for (Index i = 0; i < a.rows; ++i) {
    for (Index j = i + 1; j < a.columns; ++j) a.at(i, j) = T{};
  }
}

/// Calls `work`(first, rows) for the chunks of `chunk` of `tokens` tokens from first to last; if
/// `forwards` is false, from last to first.
template <class Work>
void for_chunks(Index tokens, Index chunk, bool forwards, const Work& work) {
  const Index count = divide_up(tokens, chunk);
  for (Index k = 0; k < count; ++k) {
    const Index first = (forwards ? k : count - 1 - k) * chunk;
    work(first, std::min(chunk, tokens - first));
  }
}

namespace detail {

/// The products of `q` and `k` (rows, s) of one chunk, those with a following token 0.
template <class T>
Matrix<T> own_products(MatrixView<const T> q, MatrixView<const T> k) {
  Matrix<T> out = project(q, k);
  hide_following(out.view());
  return out;
}

}  // namespace detail

/// `out` += linear products over the tokens in `reach`, for `q`, `k` (T, s) and `v`, out
/// (T, w). `chunk` is the tokens of a chunk; with kUpToOwn, how many are taken at a
/// time; with kAll it is not read.
template <class T>
void add_linear_products(Reach reach, Index chunk, MatrixView<const T> q, MatrixView<const T> k,
                         MatrixView<const T> v, MatrixView<T> out) {
  Matrix<T> sums = Matrix<T>::zero(k.columns, v.columns);
  if (reach == Reach::kAll) {
    add_transposed_product<T>(k, v, sums.view());
    kernel::add_to<T>(product<T>(q, sums.view()).view(), out);
    return;
  }
  for_chunks(q.rows, chunk, true, [&](Index first, Index rows) {
    const MatrixView<const T> own_q = q.middle_rows(first, rows);
    const MatrixView<const T> own_k = k.middle_rows(first, rows);
    const MatrixView<const T> own_v = v.middle_rows(first, rows);
    kernel::add_to<T>(product<T>(own_q, sums.view()).view(), out.middle_rows(first, rows));
    if (reach == Reach::kUpToOwn) {
      const Matrix<T> a = detail::own_products(own_q, own_k);
      kernel::add_to<T>(product<T>(a.view(), own_v).view(), out.middle_rows(first, rows));
    }
    add_transposed_product<T>(own_k, own_v, sums.view());
  });
}

/// From `d_out` (T, w) adds the gradients of add_linear_products, with the same `reach`, `chunk`,
/// `q`, `k` and `v`, to `d_q`, `d_k` and `d_v`.
template <class T>
void add_linear_products_backward(Reach reach, Index chunk, MatrixView<const T> q,
                                  MatrixView<const T> k, MatrixView<const T> v,
                                  MatrixView<const T> d_out, MatrixView<T> d_q, MatrixView<T> d_k,
                                  MatrixView<T> d_v) {
  // What tokens in front of a chunk have summed up to, Σ kᵀ v; from the last chunk to the first
  // what it is worth to those behind, Σ qᵀ d_out.
  Matrix<T> sums = Matrix<T>::zero(k.columns, v.columns);
  Matrix<T> d_sums = Matrix<T>::zero(k.columns, v.columns);
  const auto queries = [&](Index first, Index rows) {
    kernel::add_to<T>(project<T>(d_out.middle_rows(first, rows), sums.view()).view(),
                      d_q.middle_rows(first, rows));
  };
  const auto keys = [&](Index first, Index rows) {
    kernel::add_to<T>(project<T>(v.middle_rows(first, rows), d_sums.view()).view(),
                      d_k.middle_rows(first, rows));
    kernel::add_to<T>(product<T>(k.middle_rows(first, rows), d_sums.view()).view(),
                      d_v.middle_rows(first, rows));
  };
  if (reach == Reach::kAll) {
    add_transposed_product<T>(k, v, sums.view());
    add_transposed_product<T>(q, d_out, d_sums.view());
    queries(0, q.rows);
    keys(0, q.rows);
    return;
  }
  for_chunks(q.rows, chunk, true, [&](Index first, Index rows) {
    queries(first, rows);
    add_transposed_product<T>(k.middle_rows(first, rows), v.middle_rows(first, rows), sums.view());
  });
  for_chunks(q.rows, chunk, false, [&](Index first, Index rows) {
    keys(first, rows);
    const MatrixView<const T> own_q = q.middle_rows(first, rows);
    const MatrixView<const T> own_d = d_out.middle_rows(first, rows);
    if (reach == Reach::kUpToOwn) {
      const MatrixView<const T> own_k = k.middle_rows(first, rows);
      const Matrix<T> a = detail::own_products(own_q, own_k);
      const Matrix<T> d_a = detail::own_products(own_d, v.middle_rows(first, rows));
      kernel::matmul_backward<T>(own_q, own_k, d_a.view(), d_q.middle_rows(first, rows),
                                 d_k.middle_rows(first, rows));
      add_transposed_product<T>(a.view(), own_d, d_v.middle_rows(first, rows));
    }
    add_transposed_product<T>(own_q, own_d, d_sums.view());
  });
}

}  // namespace masque::nn::mixing
