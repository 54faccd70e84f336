#include "kernel/activation.hpp"

#include <algorithm>
#include <array>
#include <complex>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/string/comma_list.hpp"
#include "kernel/activation_reference.hpp"
#include "kernel/activation_rows.hpp"
#include "kernel/number/scalar.hpp"
#include "kernel/parallel.hpp"

namespace masque::kernel {
namespace {

constexpr std::array<std::pair<std::string_view, Activation>, 26> kNames{{
    {"gelu", Activation::kGelu},
    {"gelu_python", Activation::kGelu},
    {"gelu_tanh", Activation::kGeluTanh},
    {"gelu_new", Activation::kGeluTanh},
    {"gelu_fast", Activation::kGeluTanh},
    {"gelu_pytorch_tanh", Activation::kGeluTanh},
    {"gelu_python_tanh", Activation::kGeluTanh},
    {"gelu_accurate", Activation::kGeluTanh},
    {"relu", Activation::kRelu},
    {"squared_relu", Activation::kSquaredRelu},
    {"relu2", Activation::kSquaredRelu},
    {"swish", Activation::kSwish},
    {"silu", Activation::kSwish},
    {"tanh", Activation::kTanh},
    {"sigmoid", Activation::kSigmoid},
    {"logistic", Activation::kSigmoid},
    {"quick_gelu", Activation::kQuickGelu},
    {"gelu_10", Activation::kClippedGelu},
    {"mish", Activation::kMish},
    {"leaky_relu", Activation::kLeakyRelu},
    {"relu6", Activation::kRelu6},
    {"laplace", Activation::kLaplace},
    {"hardswish", Activation::kHardSwish},
    {"sqrtsoftplus", Activation::kSqrtSoftplus},
    {"linear", Activation::kNone},
    {"none", Activation::kNone},
}};

}  // namespace

std::optional<Activation> find_activation(std::string_view name) {
  for (const auto& [known, value] : kNames) {
    if (known == name) return value;
  }
  return std::nullopt;
}

std::string activation_names() {
  std::vector<std::string_view> names;
  for (const auto& known : kNames) names.push_back(known.first);
  return or_list(names);
}

template <class T>
void activation_forward(Activation f, MatrixView<T> x) {
  if (f == Activation::kNone) return;
  for_rows(x.rows, x.columns, [&](Index i) { activate_row(f, x.row(i), x.row(i), x.columns); });
}

template <class T>
void activation_forward(Activation f, MatrixView<const T> x, MatrixView<T> y) {
  MASQUE_CHECK(x.rows == y.rows && x.columns == y.columns);
  for_rows(x.rows, x.columns, [&](Index i) { activate_row(f, x.row(i), y.row(i), x.columns); });
}

template <class T>
void activation_backward(Activation f, MatrixView<const T> x, MatrixView<T> d) {
  MASQUE_CHECK(x.rows == d.rows && x.columns == d.columns);
  if (f == Activation::kNone) return;
  for_rows(x.rows, x.columns,
           [&](Index i) { multiply_slope_row(f, x.row(i), d.row(i), x.columns); });
}

template <class T>
void activation_backward(Activation f, MatrixView<const T> x, MatrixView<const T> d_y,
                         MatrixView<T> d_x) {
  MASQUE_CHECK(x.rows == d_y.rows && x.columns == d_y.columns);
  MASQUE_CHECK(x.rows == d_x.rows && x.columns == d_x.columns);
  for_rows(x.rows, x.columns,
           [&](Index i) { add_slope_row(f, x.row(i), d_y.row(i), d_x.row(i), x.columns); });
}

template <class T>
void soft_cap(double cap, MatrixView<T> x) {
  const T by = static_cast<T>(1 / cap);
  const T most = static_cast<T>(cap);
  for_rows(x.rows, x.columns, [&](Index i) {
    T* row = x.row(i);
    for (Index c = 0; c < x.columns; ++c) row[c] *= by;
    activate_row(Activation::kTanh, row, row, x.columns);
    for (Index c = 0; c < x.columns; ++c) row[c] *= most;
  });
}

template <class T>
void soft_cap_backward(double cap, MatrixView<const T> y, MatrixView<T> d) {
  MASQUE_CHECK(y.rows == d.rows && y.columns == d.columns);
  const double by = 1 / cap;
  for_rows(y.rows, y.columns, [&](Index i) {
    for (Index c = 0; c < y.columns; ++c) {
      const double ratio = reference::real_part(y.at(i, c)) * by;
      d.at(i, c) *= static_cast<T>(std::max(0.0, 1 - ratio * ratio));
    }
  });
}

template <class T>
void gated_forward(Activation f, MatrixView<const T> gate, MatrixView<const T> up,
                   MatrixView<T> y) {
  MASQUE_CHECK(gate.rows == up.rows && gate.columns == up.columns);
  MASQUE_CHECK(gate.rows == y.rows && gate.columns == y.columns);
  for_rows(gate.rows, gate.columns, [&](Index i) {
    activate_row(f, gate.row(i), y.row(i), gate.columns);
    multiply_row(up.row(i), y.row(i), gate.columns);
  });
}

template <class T>
void gated_backward(Activation f, MatrixView<const T> gate, MatrixView<const T> up,
                    MatrixView<const T> d_y, MatrixView<T> d_gate, MatrixView<T> d_up) {
  MASQUE_CHECK(gate.rows == up.rows && gate.columns == up.columns);
  MASQUE_CHECK(gate.rows == d_y.rows && gate.columns == d_y.columns);
  MASQUE_CHECK(gate.rows == d_gate.rows && gate.columns == d_gate.columns);
  MASQUE_CHECK(gate.rows == d_up.rows && gate.columns == d_up.columns);
  for_rows(gate.rows, gate.columns, [&](Index i) {
    // d_up += f(g) ⊙ d_y, d_g += f′(g) ⊙ up ⊙ d_y
    const GateRow<T> row{gate.row(i), up.row(i), d_y.row(i), d_gate.row(i), d_up.row(i)};
    add_gate_row(f, row, gate.columns);
  });
}

#define MASQUE_INSTANTIATE(T)                                                                \
  template void activation_forward<T>(Activation, MatrixView<T>);                            \
  template void activation_forward<T>(Activation, MatrixView<const T>, MatrixView<T>);       \
  template void activation_backward<T>(Activation, MatrixView<const T>, MatrixView<T>);      \
  template void activation_backward<T>(Activation, MatrixView<const T>, MatrixView<const T>, \
                                       MatrixView<T>);                                       \
  template void soft_cap<T>(double, MatrixView<T>);                                          \
  template void soft_cap_backward<T>(double, MatrixView<const T>, MatrixView<T>);            \
  template void gated_forward<T>(Activation, MatrixView<const T>, MatrixView<const T>,       \
                                 MatrixView<T>);                                             \
  template void gated_backward<T>(Activation, MatrixView<const T>, MatrixView<const T>,      \
                                  MatrixView<const T>, MatrixView<T>, MatrixView<T>);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
MASQUE_INSTANTIATE(std::complex<double>)
#undef MASQUE_INSTANTIATE

}  // namespace masque::kernel
