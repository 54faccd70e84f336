// Sixteen floats or eight doubles side by side, in as many vectors as the target needs: loops over
// them have the same order of operations, and so the same bits, on every instruction set (without
// fused multiply-add, which SSE lacks, mul_add rounds twice). For files that begin with
// base/processor/simd.hpp.
#if defined(MASQUE_KERNEL_GROUP_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MASQUE_KERNEL_GROUP_INL
#undef MASQUE_KERNEL_GROUP_INL
#else
#define MASQUE_KERNEL_GROUP_INL
#endif

#include <cmath>
#include <cstdint>
#include <type_traits>

#if defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "base/types.hpp"

HWY_BEFORE_NAMESPACE();
namespace masque::kernel {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Elements of a group.
template <class T>
inline constexpr int kGroup = 64 / static_cast<int>(sizeof(T));

/// Integers of the size of T.
template <class T>
using WordOf = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

#if HWY_TARGET == HWY_SCALAR
// Highway's vectors have one lane here; those of the compiler fit the registers that every
// processor of this kind has.
template <class T>
struct Native {
  using Number = T;
  using Vector __attribute__((vector_size(16))) = T;
  using Anywhere __attribute__((vector_size(16), may_alias, aligned(sizeof(T)))) = T;
  using Words __attribute__((vector_size(16))) = WordOf<T>;
  static constexpr int kLanes = 16 / static_cast<int>(sizeof(T));
  static HWY_INLINE Vector zero() { return Vector{}; }
  static HWY_INLINE Vector set(T x) { return Vector{} + x; }
  static HWY_INLINE Vector load(const T* x) { return *reinterpret_cast<const Anywhere*>(x); }
  static HWY_INLINE void store(Vector x, T* to) { *reinterpret_cast<Anywhere*>(to) = x; }
  static HWY_INLINE Vector add(Vector a, Vector b) { return a + b; }
  static HWY_INLINE Vector subtract(Vector a, Vector b) { return a - b; }
  static HWY_INLINE Vector multiply(Vector a, Vector b) { return a * b; }
  static HWY_INLINE Vector divide(Vector a, Vector b) { return a / b; }
  static HWY_INLINE Vector mul_add(Vector a, Vector b, Vector c) {
#if defined(__aarch64__)
    if constexpr (sizeof(T) == 4) return static_cast<Vector>(vfmaq_f32(c, a, b));
    if constexpr (sizeof(T) == 8) return static_cast<Vector>(vfmaq_f64(c, a, b));
#endif
    return a * b + c;
  }
  static HWY_INLINE Vector root(Vector a) {
    for (int i = 0; i < kLanes; ++i) a[i] = std::sqrt(a[i]);
    return a;
  }
  static HWY_INLINE Vector if_greater(Vector a, Vector b, Vector yes, Vector no) {
    return a > b ? yes : no;
  }
  static HWY_INLINE Vector if_equal(Vector a, Vector b, Vector yes, Vector no) {
    return a == b ? yes : no;
  }
  template <int kBits>
  static HWY_INLINE Vector shift_left(Vector a) {
    return __builtin_bit_cast(Vector, __builtin_bit_cast(Words, a) << kBits);
  }
  /// Lane i of `yes` where bit `first` + i is set, else of `no`.
  static HWY_INLINE Vector if_bit(std::uint64_t bits, int first, Vector yes, Vector no) {
    Words set;
    for (int i = 0; i < kLanes; ++i) set[i] = static_cast<WordOf<T>>(bits >> (first + i) & 1U);
    return set != 0 ? yes : no;
  }
};
#else
template <class T>
struct Native {
  using Number = T;
  using Tag = hn::CappedTag<T, static_cast<std::size_t>(kGroup<T>)>;
  using Vector = hn::Vec<Tag>;
  static constexpr int kLanes = static_cast<int>(hn::MaxLanes(Tag()));
  static HWY_INLINE Vector zero() { return hn::Zero(Tag()); }
  static HWY_INLINE Vector set(T x) { return hn::Set(Tag(), x); }
  static HWY_INLINE Vector load(const T* x) { return hn::LoadU(Tag(), x); }
  static HWY_INLINE void store(Vector x, T* to) { hn::StoreU(x, Tag(), to); }
  static HWY_INLINE Vector add(Vector a, Vector b) { return hn::Add(a, b); }
  static HWY_INLINE Vector subtract(Vector a, Vector b) { return hn::Sub(a, b); }
  static HWY_INLINE Vector multiply(Vector a, Vector b) { return hn::Mul(a, b); }
  static HWY_INLINE Vector divide(Vector a, Vector b) { return hn::Div(a, b); }
  static HWY_INLINE Vector mul_add(Vector a, Vector b, Vector c) { return hn::MulAdd(a, b, c); }
  static HWY_INLINE Vector root(Vector a) { return hn::Sqrt(a); }
  static HWY_INLINE Vector if_greater(Vector a, Vector b, Vector yes, Vector no) {
    return hn::IfThenElse(hn::Gt(a, b), yes, no);
  }
  static HWY_INLINE Vector if_equal(Vector a, Vector b, Vector yes, Vector no) {
    return hn::IfThenElse(hn::Eq(a, b), yes, no);
  }
  template <int kBits>
  static HWY_INLINE Vector shift_left(Vector a) {
    const hn::RebindToSigned<Tag> words;
    return hn::BitCast(Tag(), hn::ShiftLeft<kBits>(hn::BitCast(words, a)));
  }
  /// Lane i of `yes` where bit `first` + i is set, else of `no`.
  static HWY_INLINE Vector if_bit(std::uint64_t bits, int first, Vector yes, Vector no) {
    const hn::RebindToUnsigned<Tag> words;
    using Word = hn::TFromD<decltype(words)>;
    alignas(64) constexpr static Word kBit[16] = {
        1U << 0, 1U << 1, 1U << 2,  1U << 3,  1U << 4,  1U << 5,  1U << 6,  1U << 7,
        1U << 8, 1U << 9, 1U << 10, 1U << 11, 1U << 12, 1U << 13, 1U << 14, 1U << 15};
    const auto some = hn::Set(words, static_cast<Word>(bits >> first & 0xFFFFU));
    const auto is_set = hn::TestBit(some, hn::Load(words, kBit));
    return hn::IfThenElse(hn::RebindMask(Tag(), is_set), yes, no);
  }
};
#endif

/// A group. The functions below work on every element.
template <class T>
struct Group {
  static constexpr int kParts = kGroup<T> / Native<T>::kLanes;
  typename Native<T>::Vector part[static_cast<std::size_t>(kParts)];
};

/// The group whose part p is make(p).
template <class T, class Make>
HWY_INLINE Group<T> group_of(const Make& make) {
  Group<T> out;
#pragma GCC unroll 8
  for (int p = 0; p < Group<T>::kParts; ++p) out.part[p] = make(p);
  return out;
}

template <class T>
HWY_INLINE Group<T> zero_group() {
  return group_of<T>([](int) { return Native<T>::zero(); });
}
template <class T>
HWY_INLINE Group<T> set_group(T x) {
  return group_of<T>([=](int) { return Native<T>::set(x); });
}
/// From any address of numbers.
template <class T>
HWY_INLINE Group<T> load_group(const T* x) {
  return group_of<T>([=](int p) { return Native<T>::load(x + p * Native<T>::kLanes); });
}
/// The first `count` numbers, then zeros.
template <class T>
HWY_INLINE Group<T> load_group(const T* x, Index count) {
  alignas(64) T parts[static_cast<std::size_t>(kGroup<T>)] = {};
  for (Index i = 0; i < count; ++i) parts[i] = x[i];
  return load_group<T>(parts);
}
template <class T>
HWY_INLINE void store_group(const Group<T>& x, T* to) {
#pragma GCC unroll 8
  for (int p = 0; p < Group<T>::kParts; ++p) {
    Native<T>::store(x.part[p], to + p * Native<T>::kLanes);
  }
}
template <class T>
HWY_INLINE Group<T> operator+(const Group<T>& a, const Group<T>& b) {
  return group_of<T>([&](int p) { return Native<T>::add(a.part[p], b.part[p]); });
}
template <class T>
HWY_INLINE Group<T> operator-(const Group<T>& a, const Group<T>& b) {
  return group_of<T>([&](int p) { return Native<T>::subtract(a.part[p], b.part[p]); });
}
template <class T>
HWY_INLINE Group<T> operator*(const Group<T>& a, const Group<T>& b) {
  return group_of<T>([&](int p) { return Native<T>::multiply(a.part[p], b.part[p]); });
}
template <class T>
HWY_INLINE Group<T> operator/(const Group<T>& a, const Group<T>& b) {
  return group_of<T>([&](int p) { return Native<T>::divide(a.part[p], b.part[p]); });
}
/// a · b + c, rounded once where the target can.
template <class T>
HWY_INLINE Group<T> mul_add(const Group<T>& a, const Group<T>& b, const Group<T>& c) {
  return group_of<T>([&](int p) { return Native<T>::mul_add(a.part[p], b.part[p], c.part[p]); });
}
template <class T>
HWY_INLINE Group<T> root(const Group<T>& a) {
  return group_of<T>([&](int p) { return Native<T>::root(a.part[p]); });
}
/// a > b ? yes : no; a comparison with NaN is false.
template <class T>
HWY_INLINE Group<T> if_greater(const Group<T>& a, const Group<T>& b, const Group<T>& yes,
                               const Group<T>& no) {
  return group_of<T>(
      [&](int p) { return Native<T>::if_greater(a.part[p], b.part[p], yes.part[p], no.part[p]); });
}
template <class T>
HWY_INLINE Group<T> if_equal(const Group<T>& a, const Group<T>& b, const Group<T>& yes,
                             const Group<T>& no) {
  return group_of<T>(
      [&](int p) { return Native<T>::if_equal(a.part[p], b.part[p], yes.part[p], no.part[p]); });
}
/// Bit i of `bits` ? element i of yes : of no.
template <class T>
HWY_INLINE Group<T> if_bit(std::uint64_t bits, const Group<T>& yes, const Group<T>& no) {
  return group_of<T>([&](int p) {
    return Native<T>::if_bit(bits, p * Native<T>::kLanes, yes.part[p], no.part[p]);
  });
}

/// The elements put together by halves: `join` of i and i + 8, then of i and i + 4, …
template <class T, class Join>
HWY_INLINE T join_halves(const Group<T>& x, const Join& join) {
  alignas(64) T parts[static_cast<std::size_t>(kGroup<T>)];
  store_group(x, parts);
#pragma GCC unroll 4
  for (int width = kGroup<T> / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) parts[i] = join(parts[i], parts[i + width]);
  }
  return parts[0];
}
template <class T>
HWY_INLINE T sum_of(const Group<T>& x) {
  return join_halves(x, [](T a, T b) { return a + b; });
}
template <class T>
HWY_INLINE T largest_of(const Group<T>& x) {
  return join_halves(x, [](T a, T b) { return a > b ? a : b; });
}

/// e^x = 2^(n + f), n whole and |f| ≤ 1/2: a polynomial times a number made of bits, within 2 units
/// of the last place. Below 2^−126 it is 0. With kBounded x ≤ 0; else above 2^127 it stays there.
/// Plain loops have exp_in_range() of elementary.hpp.
template <bool kBounded>
HWY_INLINE Group<float> exp_group(const Group<float>& x) {
  // Adding it leaves n + 127 in the low bits.
  constexpr float kRound = 12582912.0F + 127;
  const auto at = [](float c) { return Native<float>::set(c); };
  return group_of<float>([&](int part) {
    using N = Native<float>;
    auto y = N::multiply(x.part[part], at(1.44269504088896341F));
    y = N::if_greater(at(-127.0F), y, at(-127.0F), y);
    if constexpr (!kBounded) y = N::if_greater(y, at(127.0F), at(127.0F), y);
    const auto rounded = N::add(y, at(kRound));
    const auto f = N::subtract(y, N::subtract(rounded, at(kRound)));
    auto p = N::mul_add(f, at(0x1.41fbb8p-13F), at(0x1.5f3e54p-10F));
    p = N::mul_add(p, f, at(0x1.3b2d4cp-7F));
    p = N::mul_add(p, f, at(0x1.c6aee8p-5F));
    p = N::mul_add(p, f, at(0x1.ebfbdcp-3F));
    p = N::mul_add(p, f, at(0x1.62e430p-1F));
    p = N::mul_add(p, f, at(1.0F));
    return N::multiply(p, N::template shift_left<23>(rounded));
  });
}

/// e^x / (1 + e^x): exp_group stops before infinity, and gives 0 for −∞.
HWY_INLINE Group<float> sigmoid_group(const Group<float>& x) {
  const auto e = exp_group<false>(x);
  return e / (e + set_group(1.0F));
}

}  // namespace HWY_NAMESPACE
}  // namespace masque::kernel
HWY_AFTER_NAMESPACE();

#endif  // guard of this target
