// The normalizers without parameters: rows of a table.
#include <algorithm>
#include <cmath>

#include "nn/normalizer.hpp"

namespace masque::nn {

namespace {

double always_one(Index /*visible*/) { return 1; }

/// log n / log 512 = log2 n / 9: 1 at 512 visible keys, exactly.
double log_512(Index visible) {
  constexpr Index kLeast = 16;
  return std::log2(static_cast<double>(std::max(visible, kLeast))) / 9;
}

double one_over_visible(Index visible) {
  return 1 / static_cast<double>(std::max(visible, Index{1}));
}

double visible_keys(Index visible) { return static_cast<double>(visible); }

/// What AttentionNormalizer's functions of the same names return.
struct NormalizerRow {
  std::string_view name;
  std::string_view source;
  ScoreMap map = ScoreMap::kExp;
  Divisor divisor = Divisor::kSum;
  double (*temperature)(Index visible) = always_one;
  double (*constant)(Index visible) = always_one;
  UnitLength unit_length = UnitLength::kNeither;
  bool scaled = true;
};

constexpr NormalizerRow kNormalizerRows[] = {
    // e^{s_ij}, softmax without its denominator. Nothing keeps scores above 88 (709 in double) from
    // overflowing.
    {.name = "exp", .source = "Su 2022, kexue.fm/archives/9105", .divisor = Divisor::kConstant},
    // Softmax of q_i·k_j / ‖k_j‖, without 1/√d: normalised keys.
    {.name = "kna",
     .source = "Su 2023, kexue.fm/archives/9859",
     .unit_length = UnitLength::kKeys,
     .scaled = false},
    // exp(s_ij) / √Σ_j exp(2 s_ij). Rows have Euclidean length 1, and their sums tell how many keys
    // there are.
    {.name = "l2", .source = "Su 2022, kexue.fm/archives/9105", .divisor = Divisor::kRootSquares},
    // Softmax of q_i·k_j / ‖q_i‖, without 1/√d: normalised queries.
    {.name = "qna",
     .source = "Su 2023, kexue.fm/archives/9859",
     .unit_length = UnitLength::kQueries,
     .scaled = false},
    // 1 / (1 + e^−s_ij), each key on its own; rows sum to anything below n_i. The bias −log n of
    // arXiv:2409.04431 is left out.
    {.name = "sigmoid",
     .source = "Ramapuram et al. 2024, arXiv:2409.04431, without their bias",
     .map = ScoreMap::kSigmoid,
     .divisor = Divisor::kConstant},
    // exp(s_ij) / Σ_j exp(s_ij).
    {.name = "softmax", .source = "Bridle 1990; attention: Vaswani et al. 2017, arXiv:1706.03762"},
    // Attention-E: softmax of s_ij · log max(n_i, 16) / log 512, so that the entropy of weights
    // depends less on the length.
    {.name = "softmax_plus",
     .source = "Su 2021, kexue.fm/archives/8823; GAU-α, kexue.fm/archives/9052",
     .temperature = log_512},
    // max(s_ij, 0)² / n_i, where n_i is the number of keys that i may read.
    {.name = "squared_relu",
     .source = "Hua et al. 2022, arXiv:2202.10447, with n_i as in kexue.fm/archives/8934",
     .map = ScoreMap::kSquaredRelu,
     .divisor = Divisor::kConstant,
     .constant = visible_keys},
    // max(q_i·k_j / n_i, 0)², as the code in the appendix of the paper has it: 1/n² in all, and no
    // 1/√d. Position terms, too, are divided by n_i.
    {.name = "squared_relu_paper",
     .source = "Hua et al. 2022, arXiv:2202.10447, code of the appendix",
     .map = ScoreMap::kSquaredRelu,
     .divisor = Divisor::kConstant,
     .temperature = one_over_visible,
     .scaled = false},
    // max(s_ij, 0)² / Σ_j max(s_ij, 0)². Rows without a positive score are 0. No temperature
    // changes
    // it: it cancels.
    {.name = "squared_relu_sum",
     .source = "Su 2022, kexue.fm/archives/9019",
     .map = ScoreMap::kSquaredRelu},
};

class FixedNormalizer final : public AttentionNormalizer {
 public:
  explicit FixedNormalizer(const NormalizerRow& row) : row_(row) {}
  std::string_view name() const override { return row_.name; }
  std::string_view source() const override { return row_.source; }
  ScoreMap map() const override { return row_.map; }
  Divisor divisor() const override { return row_.divisor; }
  double temperature(Index visible) const override { return row_.temperature(visible); }
  double constant(Index visible) const override { return row_.constant(visible); }
  UnitLength unit_length() const override { return row_.unit_length; }
  bool scaled() const override { return row_.scaled; }

 private:
  const NormalizerRow& row_;
};

/// Registers every row.
struct FixedRegistration {
  FixedRegistration() {
    for (const NormalizerRow& row : kNormalizerRows)
      NormalizerRegistration(std::make_unique<FixedNormalizer>(row));
  }
};
const FixedRegistration kRegistration;

}  // namespace

}  // namespace masque::nn
