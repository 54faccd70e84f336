#include "nn/position.hpp"
#include <stdexcept>
namespace masque::nn {
#define S(T) \
template<> std::unique_ptr<ScoreBias<T>> t5_bias<T>(MatrixView<const T>, Index, bool, Places) { throw std::runtime_error("stub"); } \
template<> std::unique_ptr<ScoreBias<T>> alibi_bias<T>(Index, Places) { throw std::runtime_error("stub"); } \
template<> std::unique_ptr<ScoreBias<T>> xlnet_bias<T>(const XlnetTerms<T>&, Places) { throw std::runtime_error("stub"); } \
template<> std::unique_ptr<ScoreBias<T>> disentangled_bias<T>(const DisentangledTerms<T>&, Places) { throw std::runtime_error("stub"); } \
template<> void sinusoidal_table<T>(std::span<const double>, bool, MatrixView<T>) { throw std::runtime_error("stub"); }
S(float) S(double)
}
