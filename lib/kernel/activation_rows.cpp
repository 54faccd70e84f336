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
constexpr float kQuick = 1.702F;
constexpr float kClip = 10.0F;
constexpr float kLeak = 0.01F;
constexpr float kLaplaceMean = 0.707107F;
constexpr float kLaplaceRate = 2.50662642F;     // 1 / (0.282095 √2)
constexpr float kLaplaceDensity = 1.41421252F;  // its rate / √π

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
inline float quick_gelu(float x) { return x * fast_sigmoid(kQuick * x); }
inline float quick_gelu_slope(float x) {
  const float s = fast_sigmoid(kQuick * x);
  return s * (1.0F + kQuick * x * (1.0F - s));
}
inline float clipped_gelu(float x) {
  const float y = gelu(x);
  return select(y > kClip, kClip, y);  // NaN stays
}
inline float clipped_gelu_slope(float x) { return select(gelu(x) > kClip, 0.0F, gelu_slope(x)); }
inline float tanh_of_softplus(float x) {  // n / (n + 2) with n = e^2x + 2 e^x
  const float e = fast_exp_negative(-std::fabs(x));
  const float n = select(x < 0.0F, e * (e + 2.0F), 1.0F + 2.0F * e);
  return n / (n + select(x < 0.0F, 2.0F, 2.0F * e * e));
}
inline float mish(float x) { return x * tanh_of_softplus(x); }
inline float mish_slope(float x) {
  const float t = tanh_of_softplus(x);
  return t + x * fast_sigmoid(x) * (1.0F - t * t);
}
inline float leaky_relu(float x) { return select(x < 0.0F, kLeak * x, x); }
inline float leaky_relu_slope(float x) { return select(x > 0.0F, 1.0F, kLeak); }
inline float relu6(float x) { return select(x > 6.0F, 6.0F, relu(x)); }
inline float relu6_slope(float x) { return select(x < 6.0F, relu_slope(x), 0.0F); }
inline float laplace(float x) {
  return 0.5F * (1.0F + fast_erf((x - kLaplaceMean) * kLaplaceRate));
}
inline float laplace_slope(float x) {
  const float z = (x - kLaplaceMean) * kLaplaceRate;
  return fast_exp_negative(-z * z) * kLaplaceDensity;
}
inline float hard_swish(float x) {
  const float inner = x * (x + 3.0F) * (1.0F / 6.0F);
  return select(x <= -3.0F, 0.0F, select(x >= 3.0F, x, inner));
}
inline float hard_swish_slope(float x) {
  const float inner = x * (1.0F / 3.0F) + 0.5F;
  return select(x <= -3.0F, 0.0F, select(x >= 3.0F, 1.0F, inner));
}
inline float sqrt_softplus_of(float x) {  // log(1 + z) = 2 artanh(z / (2 + z)) for z ≤ 1
  const float z = fast_exp_negative(-std::fabs(x));
  const float r = z / (2.0F + z);
  const float s = r * r;  // at most 1/9
  float p = 0.0769230769F;
  p = p * s + 0.0909090909F;
  p = p * s + 0.111111111F;
  p = p * s + 0.142857143F;
  p = p * s + 0.2F;
  p = p * s + 0.333333333F;
  p = p * s + 1.0F;
  return std::sqrt(select(x > 0.0F, x, 0.0F) + 2.0F * r * p);
}
inline float sqrt_softplus(float x) { return select(x == x, sqrt_softplus_of(x), x); }
inline float sqrt_softplus_slope(float x) {
  constexpr float kLeast = 1e-18F;  // where e^x is 0, so is its root
  const float root = sqrt_softplus(x);
  return 0.5F * fast_sigmoid(x) / select(root < kLeast, kLeast, root);
}
inline float same(float x) { return x; }
inline float one(float /*x*/) { return 1.0F; }

}  // namespace

// One loop for each activation: statement(function, slope) is the body.
#define MASQUE_FOR_EACH_ACTIVATION(f, n, statement)                                               \
  switch (f) {                                                                                    \
    case Activation::kNone: MASQUE_LOOP(n, statement(same, one))                                  \
    case Activation::kGelu: MASQUE_LOOP(n, statement(gelu, gelu_slope))                           \
    case Activation::kGeluTanh: MASQUE_LOOP(n, statement(gelu_tanh, gelu_tanh_slope))             \
    case Activation::kRelu: MASQUE_LOOP(n, statement(relu, relu_slope))                           \
    case Activation::kSquaredRelu: MASQUE_LOOP(n, statement(squared_relu, squared_relu_slope))    \
    case Activation::kSwish: MASQUE_LOOP(n, statement(swish, swish_slope))                        \
    case Activation::kTanh: MASQUE_LOOP(n, statement(fast_tanh, tanh_slope))                      \
    case Activation::kSigmoid: MASQUE_LOOP(n, statement(fast_sigmoid, sigmoid_slope))             \
    case Activation::kQuickGelu: MASQUE_LOOP(n, statement(quick_gelu, quick_gelu_slope))          \
    case Activation::kClippedGelu: MASQUE_LOOP(n, statement(clipped_gelu, clipped_gelu_slope))    \
    case Activation::kMish: MASQUE_LOOP(n, statement(mish, mish_slope))                           \
    case Activation::kLeakyRelu: MASQUE_LOOP(n, statement(leaky_relu, leaky_relu_slope))          \
    case Activation::kRelu6: MASQUE_LOOP(n, statement(relu6, relu6_slope))                        \
    case Activation::kLaplace: MASQUE_LOOP(n, statement(laplace, laplace_slope))                  \
    case Activation::kHardSwish: MASQUE_LOOP(n, statement(hard_swish, hard_swish_slope))          \
    case Activation::kSqrtSoftplus: MASQUE_LOOP(n, statement(sqrt_softplus, sqrt_softplus_slope)) \
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
