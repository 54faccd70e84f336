// Products of pairs of bfloat16. No plain loop becomes the instruction, and Highway 1.0 has none
// for it: intrinsics.
#include "base/error.hpp"
#include "base/processor.hpp"
#include "kernel/packed_product.hpp"

// One target alone: AVX-512 and this instruction.
#include <hwy/detect_targets.h>
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define MASQUE_HAS_PAIRS 1
#else
#define MASQUE_HAS_PAIRS 0
#endif

#if MASQUE_HAS_PAIRS
#undef HWY_TARGET
#define HWY_TARGET HWY_AVX3
#include <hwy/highway.h>
#include <immintrin.h>

#define MASQUE_BEFORE_PRODUCT()                          \
  HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR_AVX3 ",avx512bf16") \
  static_assert(true, "")
#define MASQUE_AFTER_PRODUCT() HWY_POP_ATTRIBUTES static_assert(true, "")
#include "kernel/packed_product-inl.hpp"

MASQUE_BEFORE_PRODUCT();
namespace masque::kernel {
namespace HWY_NAMESPACE {
namespace {

struct Pairs {
  using Number = float;
  using Vector = __m512;
  static constexpr int kLanes = 16;
  static HWY_INLINE Vector zero() { return _mm512_setzero_ps(); }
  static HWY_INLINE Vector load(const float* x) { return _mm512_loadu_ps(x); }
  static HWY_INLINE Vector repeat(const float* x) { return _mm512_set1_ps(*x); }
  static HWY_INLINE Vector multiply_add(Vector a, Vector b, Vector sum) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
  static HWY_INLINE Vector add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
  static HWY_INLINE Vector multiply(Vector a, float factor) {
    return _mm512_mul_ps(a, _mm512_set1_ps(factor));
  }
  static HWY_INLINE void store(Vector a, float* to) { _mm512_storeu_ps(to, a); }
};

void multiply_pairs(const LeftOperand<float>& a, Index depth, const Strips<const float>& b,
                    const float* factors, const MatrixView<float>& c, Onto onto) {
  multiply_any<Pairs>(a, depth, b, factors, c, onto);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace masque::kernel
MASQUE_AFTER_PRODUCT();
#endif

namespace masque::kernel {

bool has_pairs() {
#if MASQUE_HAS_PAIRS
  return instruction_set() >= InstructionSet::kAvx512Bf16;
#else
  return false;
#endif
}

void multiply_packed_pairs(const LeftOperand<float>& a, Index depth, const Strips<const float>& b,
                           const float* factors, const MatrixView<float>& c, Onto onto) {
  MASQUE_CHECK(has_pairs() && (onto == Onto::kNothing || factors == nullptr));
#if MASQUE_HAS_PAIRS
  N_AVX3::multiply_pairs(a, depth, b, factors, c, onto);
#else
  static_cast<void>(a), static_cast<void>(depth), static_cast<void>(b), static_cast<void>(c);
#endif
}

}  // namespace masque::kernel
