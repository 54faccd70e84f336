// What every use of oneDNN needs: the engine, a stream and scratch memory of each thread.
#pragma once

#include <cstddef>

#include "kernel/onednn/compat.hpp"

namespace masque::kernel::onednn {

/// The processor. One per process.
const dnnl::engine& engine();
/// Of the calling thread.
dnnl::stream& stream();

/// Memory of the calling thread, aligned to 64 bytes, at least `bytes`; its content is lost with
/// the next call. One for each purpose.
enum class ScratchPurpose { kLibrary, kOperand, kProduct };
std::byte* scratch(ScratchPurpose purpose, std::size_t bytes);

/// While it lives, the library does not start threads from this one: sums are never split, and all
/// parallelism is ours.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

}  // namespace masque::kernel::onednn
