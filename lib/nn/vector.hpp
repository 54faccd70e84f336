// Vectors of 64 bytes, of the compiler: a register where there is one, else several. Never passed
// by value: how they are passed depends on the processor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace masque::nn::tile {

template <class T>
struct Vectors;

template <>
struct Vectors<float> {
  using Aligned __attribute__((vector_size(64), may_alias)) = float;
  using Unaligned __attribute__((vector_size(64), may_alias, aligned(4))) = float;
  using Bits __attribute__((vector_size(64), may_alias)) = std::int32_t;
  using Word = std::int32_t;
};

template <>
struct Vectors<double> {
  using Aligned __attribute__((vector_size(64), may_alias)) = double;
  using Unaligned __attribute__((vector_size(64), may_alias, aligned(8))) = double;
  using Bits __attribute__((vector_size(64), may_alias)) = std::int64_t;
  using Word = std::int64_t;
};

/// The vector at an address that is a multiple of 64.
template <class T>
[[gnu::always_inline]] inline typename Vectors<T>::Aligned& vector_at(T* x) {
  return *reinterpret_cast<typename Vectors<T>::Aligned*>(x);
}
template <class T>
[[gnu::always_inline]] inline const typename Vectors<T>::Aligned& vector_at(const T* x) {
  return *reinterpret_cast<const typename Vectors<T>::Aligned*>(x);
}

/// out lane i = lane order(i) of a and b, one behind the other; `Order` is a constexpr function
/// object.
template <class Order, class Vector, std::size_t... kLane>
[[gnu::always_inline]] inline void shuffle(const Vector& a, const Vector& b, Vector& out,
                                           std::index_sequence<kLane...> /*lanes*/) {
  out = __builtin_shufflevector(a, b, Order{}(static_cast<int>(kLane))...);
}

}  // namespace masque::nn::tile
