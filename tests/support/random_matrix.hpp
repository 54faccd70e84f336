// Matrices for tests: standard normal numbers that are floats in every type.
#pragma once

#include <cstring>
#include <vector>

#include "base/random/random.hpp"
#include "kernel/parallel.hpp"
#include "tensor/matrix.hpp"

namespace masque::test {

template <class T = float>
Matrix<T> random_matrix(Index rows, Index columns, std::uint64_t item) {
  Matrix<T> result(rows, columns);
  std::vector<double> values(result.span().size());
  RandomStream(3, "random matrix", item).normal(0, values.size(), values.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    result.span()[i] = static_cast<T>(static_cast<float>(values[i]));
  }
  return result;
}

inline bool same_bits(const Matrix<float>& a, const Matrix<float>& b) {
  return a.rows() == b.rows() && a.columns() == b.columns() &&
         std::memcmp(a.data(), b.data(), a.span().size_bytes()) == 0;
}

/// The kernels' number of threads while it lives.
struct Threads {
  explicit Threads(int count) { kernel::set_threads(count); }
  ~Threads() { kernel::set_threads(0); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
};

}  // namespace masque::test
