// Fast loops in float. Every case is its own loop, so that it vectorises. Products and sums are
// fused where the processor can (lib/CMakeLists.txt), so that the last bit may differ between
// processors.
#include "kernel/activation_rows.hpp"

#include "base/processor/vectorize.hpp"
#include "kernel/number/elementary.hpp"

namespace masque::kernel {
namespace {

using elementary_detail::select;

constexpr float kRootHalf = 0.707106781F;
constexpr float kRootTwoOverPi = 0.797884561F;
constexpr float kCubic = 0.044715F;
constexpr float kDensity = 0.398942280F;  // φ(0)

inline float gelu(float x) { return fast_gelu(x); }
inline float gelu_slope(float x) {
  return 0.5F * (1.0F + fast_erf(x * kRootHalf)) + x * fast_exp_negative(-0.5F * x * x) * kDensity;
}
inline float gelu_tanh(float x) {
  return 0.5F * x * (1.0F + fast_tanh(kRootTwoOverPi * (x + kCubic * x * x * x)));
}
inline float gelu_tanh_slope(float x) {
  const float t = fast_tanh(kRootTwoOverPi * (x + kCubic * x * x * x));
  const float inner = kRootTwoOverPi * (1.0F + 3.0F * kCubic * x * x);
  return 0.5F * (1.0F + t + x * (1.0F - t * t) * inner);
}
inline float relu(float x) { return select(x <= 0.0F, 0.0F, x); }  // NaN stays
inline float relu_slope(float x) { return select(x > 0.0F, 1.0F, 0.0F); }
inline float squared_relu(float x) { return relu(x) * relu(x); }
inline float squared_relu_slope(float x) { return 2.0F * relu(x); }
inline float swish(float x) { return x * fast_sigmoid(x); }
inline float swish_slope(float x) {
  const float s = fast_sigmoid(x);
  return s * (1.0F + x * (1.0F - s));
}
inline float tanh_slope(float x) {
  const float t = fast_tanh(x);
  return 1.0F - t * t;
}
inline float sigmoid_slope(float x) {
  const float s = fast_sigmoid(x);
  return s * (1.0F - s);
}
inline float same(float x) { return x; }
inline float one(float /*x*/) { return 1.0F; }

}  // namespace

// One loop for each activation: statement(function, slope) is the body.
#define MASQUE_FOR_EACH_ACTIVATION(f, n, statement)                                            \
  switch (f) {                                                                                 \
    case Activation::kNone: MASQUE_LOOP(n, statement(same, one))                               \
    case Activation::kGelu: MASQUE_LOOP(n, statement(gelu, gelu_slope))                        \
    case Activation::kGeluTanh: MASQUE_LOOP(n, statement(gelu_tanh, gelu_tanh_slope))          \
    case Activation::kRelu: MASQUE_LOOP(n, statement(relu, relu_slope))                        \
    case Activation::kSquaredRelu: MASQUE_LOOP(n, statement(squared_relu, squared_relu_slope)) \
    case Activation::kSwish: MASQUE_LOOP(n, statement(swish, swish_slope))                     \
    case Activation::kTanh: MASQUE_LOOP(n, statement(fast_tanh, tanh_slope))                   \
    case Activation::kSigmoid: MASQUE_LOOP(n, statement(fast_sigmoid, sigmoid_slope))          \
  }
#define MASQUE_LOOP(n, body)              \
  for (Index i = 0; i < (n); ++i) (body); \
  break;

namespace {

void activate_row_loop(Activation f, const float* x, float* y, Index n) {
#define MASQUE_BODY(value, slope) y[i] = value(x[i])
  MASQUE_FOR_EACH_ACTIVATION(f, n, MASQUE_BODY)
#undef MASQUE_BODY
}

void add_slope_row_loop(Activation f, const float* x, const float* d_y, float* d_x, Index n) {
#define MASQUE_BODY(value, slope) d_x[i] += slope(x[i]) * d_y[i]
  MASQUE_FOR_EACH_ACTIVATION(f, n, MASQUE_BODY)
#undef MASQUE_BODY
}

void multiply_slope_row_loop(Activation f, const float* x, float* d, Index n) {
#define MASQUE_BODY(value, slope) d[i] *= slope(x[i])
  MASQUE_FOR_EACH_ACTIVATION(f, n, MASQUE_BODY)
#undef MASQUE_BODY
}

void add_gate_row_loop(Activation f, const GateRow<float>& row, Index n) {
  const float* gate = row.gate;
  const float* up = row.up;
  const float* d_y = row.d_y;
  float* d_gate = row.d_gate;
  float* d_up = row.d_up;
#define MASQUE_BODY(value, slope) \
  d_up[i] += value(gate[i]) * d_y[i], d_gate[i] += slope(gate[i]) * up[i] * d_y[i]
  MASQUE_FOR_EACH_ACTIVATION(f, n, MASQUE_BODY)
#undef MASQUE_BODY
}

void multiply_row_loop(const float* x, float* y, Index n) {
  for (Index i = 0; i < n; ++i) y[i] *= x[i];
}

void finish_row_loop(Activation f, const float* x, const float* bias, float* y, Index n) {
  if (bias == nullptr) {
    activate_row_loop(f, x, y, n);
    return;
  }
#define MASQUE_BODY(value, slope) y[i] = value(x[i] + bias[i])
  MASQUE_FOR_EACH_ACTIVATION(f, n, MASQUE_BODY)
#undef MASQUE_BODY
}

}  // namespace

void activate_row(Activation f, const float* x, float* y, Index n) {
  vectorized<activate_row_loop>(f, x, y, n);
}

void add_slope_row(Activation f, const float* x, const float* d_y, float* d_x, Index n) {
  vectorized<add_slope_row_loop>(f, x, d_y, d_x, n);
}

void multiply_slope_row(Activation f, const float* x, float* d, Index n) {
  vectorized<multiply_slope_row_loop>(f, x, d, n);
}

void add_gate_row(Activation f, const GateRow<float>& row, Index n) {
  vectorized<add_gate_row_loop>(f, row, n);
}

void multiply_row(const float* x, float* y, Index n) { vectorized<multiply_row_loop>(x, y, n); }

void finish_row(Activation f, const float* x, const float* bias, float* y, Index n) {
  vectorized<finish_row_loop>(f, x, bias, y, n);
}

#undef MASQUE_LOOP
#undef MASQUE_FOR_EACH_ACTIVATION

}  // namespace masque::kernel
