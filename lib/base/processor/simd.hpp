// Vectors of the processor: Google Highway, with the targets that masque compiles for.
//
// A file with vector code is compiled once for each target. It begins with
//
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "layer/this_file.cpp"
//   #include "base/processor/simd.hpp"
//
// keeps its vector code between HWY_BEFORE_NAMESPACE() and HWY_AFTER_NAMESPACE() in a namespace
// HWY_NAMESPACE, and has everything else under `#if HWY_ONCE`: HWY_EXPORT of each function, and
// calls by HWY_DYNAMIC_DISPATCH, which takes the best target that `instruction_set()` allows.
// Plain loops that the compiler vectorises need none of this: see vectorize.hpp.
//
// This file is read once for each target: it has no guard.
#if !defined(__x86_64__)
// One set of instructions, which the compiler may use everywhere: group-inl.hpp takes its vectors.
// (Highway's NEON wants AES, too, which small boards lack.)
#define HWY_COMPILE_ONLY_SCALAR
#endif
#include <hwy/detect_targets.h>

// Left out are targets that bring these loops nothing but time to compile.
#ifdef HWY_AVX3_ZEN4
#define MASQUE_ZEN4 HWY_AVX3_ZEN4
#else
#define MASQUE_ZEN4 0
#endif
#ifdef HWY_AVX3_SPR
#define MASQUE_SPR HWY_AVX3_SPR
#else
#define MASQUE_SPR 0
#endif
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | MASQUE_ZEN4 | MASQUE_SPR)

#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>         // IWYU pragma: export
