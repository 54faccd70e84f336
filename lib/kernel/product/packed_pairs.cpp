// Products of pairs of bfloat16. No plain loop becomes the instruction, and Highway 1.0 has none
// for it: intrinsics.
#include "base/error.hpp"
#include "base/processor/processor.hpp"
#include "kernel/product/packed_product.hpp"

// One target alone: AVX-512 and this instruction.
#include <hwy/detect_targets.h>
#if defined(__x86_64__)
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
#include "kernel/product/packed_product-inl.hpp"

MASQUE_BEFORE_PRODUCT();
namespace masque::kernel {
namespace HWY_NAMESPACE {
namespace {

/// Floats whose bits are two bfloat16.
struct Pairs : Native<float> {
  static HWY_INLINE Vector mul_add(Vector a, Vector b, Vector sum) {
    return Vector{_mm512_dpbf16_ps(sum.raw, reinterpret_cast<__m512bh>(a.raw),
                                   reinterpret_cast<__m512bh>(b.raw))};
  }
};

void multiply_pairs(const LeftOperand<float>& a, Index depth, const Strips<const float>& b,
                    const float* factors, const MatrixView<float>& c, Onto onto,
                    const float* bias) {
  multiply_any<Pairs>(a, depth, b, factors, c, onto, bias);
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
                           const float* factors, const MatrixView<float>& c, Onto onto,
                           const float* bias) {
  MASQUE_CHECK(has_pairs() && (onto == Onto::kNothing || factors == nullptr));
#if MASQUE_HAS_PAIRS
  N_AVX3::multiply_pairs(a, depth, b, factors, c, onto, bias);
#else
  static_cast<void>(a), static_cast<void>(depth), static_cast<void>(b), static_cast<void>(c);
  static_cast<void>(bias);
#endif
}

}  // namespace masque::kernel
