#include "kernel/onednn/context.hpp"

#include <omp.h>

#include <array>

#include "base/processor.hpp"
#include "tensor/matrix.hpp"

namespace masque::kernel::onednn {

namespace {

/// A limit on the instruction set holds for the library, too. Before its first use.
dnnl::engine make_engine() {
  if (instruction_set_is_limited()) {
    const auto isa = [] {
      switch (instruction_set()) {
        case InstructionSet::kAvx2: return dnnl_cpu_isa_avx2;
        case InstructionSet::kAvx512: return dnnl_cpu_isa_avx512_core;
        case InstructionSet::kAvx512Bf16: return dnnl_cpu_isa_avx512_core_bf16;
        case InstructionSet::kAmx: return dnnl_cpu_isa_avx512_core_amx;
        default: return dnnl_cpu_isa_sse41;
      }
    };
    // If the library cannot be limited, it continues with its own choice.
    static_cast<void>(dnnl_set_max_cpu_isa(isa()));
  }
  return {dnnl::engine::kind::cpu, 0};
}

}  // namespace

const dnnl::engine& engine() {
  static const dnnl::engine kEngine = make_engine();
  return kEngine;
}

dnnl::stream& stream() {
  thread_local dnnl::stream the_stream(engine());
  return the_stream;
}

std::byte* scratch(ScratchPurpose purpose, std::size_t bytes) {
  thread_local std::array<Matrix<std::byte>, 3> buffers;
  Matrix<std::byte>& buffer = buffers[static_cast<std::size_t>(purpose)];
  if (static_cast<std::size_t>(buffer.columns()) < bytes) {
    buffer = Matrix<std::byte>(1, static_cast<Index>(bytes));
  }
  return buffer.data();
}

OneThread::OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
OneThread::~OneThread() { omp_set_num_threads(before_); }

}  // namespace masque::kernel::onednn
