// The differences between oneDNN 2.x and 3.x that reach us: nothing else asks for the version.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

namespace masque::kernel::onednn {

/// The product dst = src · weights on `engine`, from the layouts `src`, `weights` and `dst`; the
/// caller gives the scratchpad. Empty (`!descriptor.get(true)`) where this library has no
/// implementation on this processor.
inline dnnl::matmul::primitive_desc matmul_descriptor(const dnnl::engine& engine,
                                                      const dnnl::memory::desc& src,
                                                      const dnnl::memory::desc& weights,
                                                      const dnnl::memory::desc& dst) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
#if DNNL_VERSION_MAJOR >= 3
  return {engine, src, weights, dst, attributes, true};
#else
  return {dnnl::matmul::desc(src, weights, dst), attributes, engine, true};
#endif
}

}  // namespace masque::kernel::onednn
