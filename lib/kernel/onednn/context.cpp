#include "kernel/onednn/context.hpp"

#include <omp.h>

#include <array>

#include "tensor/matrix.hpp"

namespace masque::kernel::onednn {

const dnnl::engine& engine() {
  static const dnnl::engine kEngine(dnnl::engine::kind::cpu, 0);
  return kEngine;
}

dnnl::stream& stream() {
  thread_local dnnl::stream the_stream(engine());
  return the_stream;
}

std::byte* scratch(Scratch purpose, std::size_t bytes) {
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
