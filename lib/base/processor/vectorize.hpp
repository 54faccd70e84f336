// Plain loops compiled for each instruction set, the one in use chosen at run time.
#pragma once

#include <utility>

#include "base/processor/processor.hpp"

// Without optimisation nothing is inlined, so that there is one variant.
#if defined(__x86_64__) && defined(__GNUC__) && defined(__OPTIMIZE__)
#define MASQUE_LOOP_VARIANTS 1
#define MASQUE_AVX2 "avx2,fma,f16c,bmi,bmi2"
#define MASQUE_AVX512 MASQUE_AVX2 ",avx512f,avx512bw,avx512dq,avx512vl"
#else
#define MASQUE_LOOP_VARIANTS 0
#endif

// Before a loop whose steps do not read what others write.
#if defined(__clang__)
#define MASQUE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define MASQUE_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace masque {

namespace vectorize_detail {

#if MASQUE_LOOP_VARIANTS
/// Calls kLoop with `args`, compiled for AVX2.
template <auto kLoop, class... Args>
[[gnu::target(MASQUE_AVX2), gnu::flatten, gnu::noinline]] auto on_avx2(Args... args) {
  return kLoop(args...);
}
/// Calls kLoop with `args`, compiled for AVX-512.
template <auto kLoop, class... Args>
[[gnu::target(MASQUE_AVX512), gnu::flatten, gnu::noinline]] auto on_avx512(Args... args) {
  return kLoop(args...);
}
#endif

}  // namespace vectorize_detail

/// kLoop(args…), compiled for the instruction set in use: `vectorized<add_row>(x, n, sums)`. kLoop
/// is a function of this file with plain loops, all of whose callees are inline; its arguments are
/// copied. Only for loops without a floating-point sum across elements: those keep their bits on
/// every instruction set.
template <auto kLoop, class... Args>
inline auto vectorized(Args... args) {
#if MASQUE_LOOP_VARIANTS
  const InstructionSet set = instruction_set();
  if (set >= InstructionSet::kAvx512) return vectorize_detail::on_avx512<kLoop>(args...);
  if (set >= InstructionSet::kAvx2) return vectorize_detail::on_avx2<kLoop>(args...);
#endif
  return kLoop(args...);
}

}  // namespace masque
