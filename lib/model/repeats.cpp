#include "model/repeats.hpp"

#include <map>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "kernel/embedding.hpp"

namespace masque::model {

Repeats::Repeats(std::span<const TokenId> ids, std::span<const Index> positions,
                 std::span<const Index> segments) {
  std::map<std::tuple<TokenId, Index, Index>, Index> seen;
  of_.reserve(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto [found, fresh] =
        seen.try_emplace({ids[i], positions[i], segments.empty() ? 0 : segments[i]},
                         static_cast<Index>(first_.size()));
    if (fresh) first_.push_back(static_cast<Index>(i));
    of_.push_back(found->second);
  }
}

template <class T>
void Repeats::forward(const kernel::Linear<T>& linear, MatrixView<const T> x,
                      MatrixView<T> y) const {
  MASQUE_CHECK(x.rows == static_cast<Index>(of_.size()));
  const auto count = static_cast<Index>(first_.size());
  Matrix<T> some(count, x.columns);
  Matrix<T> products(count, y.columns);
  kernel::embedding_forward<T, Index>(x, first_, some.view());
  linear.forward(std::as_const(some).view(), products.view());
  kernel::embedding_forward<T, Index>(std::as_const(products).view(), of_, y);
}

template void Repeats::forward(const kernel::Linear<float>&, MatrixView<const float>,
                               MatrixView<float>) const;
template void Repeats::forward(const kernel::Linear<double>&, MatrixView<const double>,
                               MatrixView<double>) const;

}  // namespace masque::model
