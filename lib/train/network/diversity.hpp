// How much attention differs from row to row, as a reward in the loss. Comments of
// https://kexue.fm/archives/7661; with A (m rows, n keys) the weights of a head on a sequence, each
// row divided by its sum, rows that read nothing left out, and population deviations:
//
//     D1 = mean_j c_j,  c_j = std_i A_ij     (a key is read by some rows only)
//     D2 = std_j c_j                         (columns differ in that)
//     D3 = std_i r_i,  r_i = std_j A_ij      (rows differ in sharpness)
//     MI = H(mean_i A_i) − mean_i H(A_i)     (mutual information of query and key, in nats)
//
// D1, D2 and D3 also of the weights as they are: the comments are about sigmoid attention, whose
// rows have sums of their own.
#pragma once

#include <array>
#include <complex>
#include <string_view>
#include <type_traits>

#include "tensor/matrix.hpp"

namespace masque::train {

/// Number of measures.
inline constexpr std::size_t kDiversities = 7;
/// As on the command line and in metrics; attn-probe has the same names for the first four.
inline constexpr std::array<std::string_view, kDiversities> kDiversityNames{
    "d1", "d2", "d3", "mi", "raw_d1", "raw_d2", "raw_d3"};

/// A number for each measure.
using Diversities = std::array<double, kDiversities>;

/// Reads `text`, such as "d2:0.1,d3:0.1": measures with their weights, others 0. Throws UsageError,
/// about the field `diversity`, for anything else.
Diversities parse_diversity(std::string_view text);

/// What sums are made in: double, or complex numbers for complex steps.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, std::complex<double>>, T, double>;

/// Returns the measures of one matrix of `weights` `[queries, keys]`, which are not negative. Adds
/// Σ_k slopes[k] · ∂D_k/∂A, with `slopes` one a measure, to `d_weights` (without data: not wanted),
/// 0 where a deviation is. T is float, double or `std::complex<double>` (without gradient).
/// Deviations of less than 10^−7 of a mean count as 0. Serial. Cost: m · n, with two logarithms an
/// element.
template <class T>
std::array<Wide<T>, kDiversities> measure_diversity(MatrixView<const T> weights,
                                                    const Diversities& slopes,
                                                    MatrixView<T> d_weights);

}  // namespace masque::train
