#include "kernel/product/packed_product.hpp"

#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/product/packed_product.cpp"
#include "base/processor/simd.hpp"
#include "kernel/product/packed_product-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace masque::kernel {
namespace HWY_NAMESPACE {

void multiply_floats(const LeftOperand<float>& a, Index depth, const Strips<const float>& b,
                     const MatrixView<float>& c, Onto onto, const float* bias) {
  multiply_any<Native<float>>(a, depth, b, nullptr, c, onto, bias);
}
void multiply_doubles(const LeftOperand<double>& a, Index depth, const Strips<const double>& b,
                      const MatrixView<double>& c, Onto onto, const double* bias) {
  multiply_any<Native<double>>(a, depth, b, nullptr, c, onto, bias);
}

}  // namespace HWY_NAMESPACE
}  // namespace masque::kernel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace masque::kernel {

HWY_EXPORT(multiply_floats);
HWY_EXPORT(multiply_doubles);

template <>
void multiply_packed(const LeftOperand<float>& a, Index depth, const Strips<const float>& b,
                     const MatrixView<float>& c, Onto onto, const float* bias) {
  HWY_DYNAMIC_DISPATCH(multiply_floats)(a, depth, b, c, onto, bias);
}
template <>
void multiply_packed(const LeftOperand<double>& a, Index depth, const Strips<const double>& b,
                     const MatrixView<double>& c, Onto onto, const double* bias) {
  HWY_DYNAMIC_DISPATCH(multiply_doubles)(a, depth, b, c, onto, bias);
}

}  // namespace masque::kernel
#endif
