// One binary that runs everywhere and is fast where it can be.
#pragma once

// Before a function whose plain loops the compiler should build for several instruction sets; the
// loader picks one. Only for loops without a floating-point reduction across elements: those keep
// their bits on every instruction set. Off where the compiler or a sanitizer cannot.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__OPTIMIZE__)
#define MASQUE_VECTORIZE \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define MASQUE_VECTORIZE
#endif
