// What every use of oneDNN needs: the engine, a stream and scratch memory of each thread.
#pragma once

#include <cstddef>

#include "kernel/onednn/compat.hpp"

namespace masque::kernel::onednn {

/// The processor. One per process; the first call applies a limit of the
/// instruction set (`MASQUE_CPU`).
const dnnl::engine& engine();
/// The stream of the calling thread.
dnnl::stream& stream();

/// Uses of scratch memory; each has its own.
enum class ScratchPurpose { kLibrary, kOperand, kProduct };
/// Memory of the calling thread for `purpose`, aligned to 64 bytes, at least `bytes`; its content
/// is lost with the next call for this purpose.
std::byte* scratch(ScratchPurpose purpose, std::size_t bytes);

/// While it lives, the library does not start threads from this one: sums are never split, and all
/// parallelism is ours.
class OneThread {
 public:
  /// Keeps the library on one thread for calls of this thread.
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

}  // namespace masque::kernel::onednn
