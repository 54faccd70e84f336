#include "nn/normalizer.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/registry/registry.hpp"
#include "base/string/comma_list.hpp"
#include "base/string/edit_distance.hpp"
#include "base/string/named_arguments.hpp"

namespace masque::nn {

namespace {

// The normalizers without parameters: rows of a table.

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
    // changes it: it cancels.
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

// The normalizers with parameters.

/// squared_relu_fixed: a_ij = max(s_ij, 0)² / n with the same n for all lengths.
class SquaredReluFixed final : public AttentionNormalizer {
 public:
  explicit SquaredReluFixed(double n = 512) : n_(n) {}
  std::string_view name() const override { return "squared_relu_fixed"; }
  std::string_view source() const override { return "Su 2022, kexue.fm/archives/9019"; }
  ScoreMap map() const override { return ScoreMap::kSquaredRelu; }
  Divisor divisor() const override { return Divisor::kConstant; }
  double constant(Index /*visible*/) const override { return n_; }
  std::vector<NormalizerParameter> parameters() const override { return {{"n", n_, 1, 1e9}}; }
  std::unique_ptr<const AttentionNormalizer> with(std::span<const double> values) const override {
    return std::make_unique<SquaredReluFixed>(values[0]);
  }

 private:
  double n_;
};

/// log_n: softmax of s_ij · log max(n_i, clip) / log base, so that the entropy of weights depends
/// less on the length: at n_i = base it is softmax. softmax_plus is base 512 with clip 16.
class LogN final : public AttentionNormalizer {
 public:
  explicit LogN(double base = 512, double clip = 1) : base_(base), clip_(clip) {}
  std::string_view name() const override { return "log_n"; }
  std::string_view source() const override {
    return "Su 2021, kexue.fm/archives/8823; Chiang and Cholak 2022, arXiv:2202.12172 (base e)";
  }
  ScoreMap map() const override { return ScoreMap::kExp; }
  Divisor divisor() const override { return Divisor::kSum; }
  double temperature(Index visible) const override {
    return std::log(std::max({static_cast<double>(visible), clip_, 1.0})) / std::log(base_);
  }
  std::vector<NormalizerParameter> parameters() const override {
    return {{"base", base_, 1.01, 1e9}, {"clip", clip_, 1, 1e9}};
  }
  std::unique_ptr<const AttentionNormalizer> with(std::span<const double> values) const override {
    return std::make_unique<LogN>(values[0], values[1]);
  }

 private:
  double base_;
  double clip_;
};

/// gauss: softmax of λ_n s_ij with λ_n = √(2 (log n_i − H₀)) / σ. Scores that are independent and
/// normal with deviation σ then have weights of entropy H₀, whatever n_i: H ≈ log n − (λσ)²/2.
///
/// Where log n_i ≤ H₀ no temperature gives an entropy of H₀ and `least` stands in: with 0 the
/// weights of such rows are equal. The default H₀ = log 512 − σ²/2 makes λ = 1 at 512 keys.
class Gauss final : public AttentionNormalizer {
 public:
  explicit Gauss(double entropy = 4.238324625039508, double sigma = 2, double least = 0)
      : entropy_(entropy), sigma_(sigma), least_(least) {}
  std::string_view name() const override { return "gauss"; }
  std::string_view source() const override {
    return "temperature that solves H = log n − (λσ)²/2 for λ; cf. kexue.fm/archives/8823";
  }
  ScoreMap map() const override { return ScoreMap::kExp; }
  Divisor divisor() const override { return Divisor::kSum; }
  double temperature(Index visible) const override {
    const double n = static_cast<double>(std::max(visible, Index{1}));
    return std::max(least_, std::sqrt(2 * std::max(0.0, std::log(n) - entropy_)) / sigma_);
  }
  std::vector<NormalizerParameter> parameters() const override {
    return {{"entropy", entropy_, 0, 100}, {"sigma", sigma_, 1e-6, 1e6}, {"least", least_, 0, 1e6}};
  }
  std::unique_ptr<const AttentionNormalizer> with(std::span<const double> values) const override {
    return std::make_unique<Gauss>(values[0], values[1], values[2]);
  }

 private:
  double entropy_;
  double sigma_;
  double least_;
};

/// ssmax: softmax of (s · log n_i + bias) · s_ij. With s = 1/log 512 it is log_n. ssmax_learned:
/// the same with an s that each head learns, as in the paper; outside of a model, which has them,
/// they are what they start from.
template <bool kLearned>
class Ssmax final : public AttentionNormalizer {
 public:
  explicit Ssmax(double s = 0.43, double bias = 0) : s_(s), bias_(bias) {}
  std::string_view name() const override { return kLearned ? "ssmax_learned" : "ssmax"; }
  std::string_view source() const override { return "Nakanishi 2025, arXiv:2501.19399"; }
  ScoreMap map() const override { return ScoreMap::kExp; }
  Divisor divisor() const override { return Divisor::kSum; }
  double temperature(Index visible) const override {
    return s_ * std::log(static_cast<double>(std::max(visible, Index{1}))) + bias_;
  }
  std::optional<double> offset_of_learned() const override {
    return kLearned ? std::optional(bias_) : std::nullopt;
  }
  std::vector<NormalizerParameter> parameters() const override {
    // The gradient of s is made of scaled queries: a 0 to start from would leave nothing.
    return {{"s", s_, kLearned ? 1e-3 : -1e3, 1e3}, {"bias", bias_, kLearned ? 0 : -1e3, 1e3}};
  }
  std::unique_ptr<const AttentionNormalizer> with(std::span<const double> values) const override {
    return std::make_unique<Ssmax<kLearned>>(values[0], values[1]);
  }

 private:
  double s_;
  double bias_;
};

/// cosa: softmax of λ cos(q_i, k_j) with λ = factor · log n; n is the length of training, or with
/// length = 0 the number of visible keys of the row.
class Cosa final : public AttentionNormalizer {
 public:
  explicit Cosa(double factor = 4, double length = 512) : factor_(factor), length_(length) {}
  std::string_view name() const override { return "cosa"; }
  std::string_view source() const override { return "Su 2023, kexue.fm/archives/9859"; }
  ScoreMap map() const override { return ScoreMap::kExp; }
  Divisor divisor() const override { return Divisor::kSum; }
  double temperature(Index visible) const override {
    const auto keys = static_cast<double>(std::max(visible, Index{1}));
    return factor_ * std::log(length_ > 0 ? length_ : keys);
  }
  UnitLength unit_length() const override { return UnitLength::kBoth; }
  bool scaled() const override { return false; }
  std::vector<NormalizerParameter> parameters() const override {
    return {{"factor", factor_, -1e3, 1e3}, {"length", length_, 0, 1e9}};
  }
  std::unique_ptr<const AttentionNormalizer> with(std::span<const double> values) const override {
    return std::make_unique<Cosa>(values[0], values[1]);
  }

 private:
  double factor_;
  double length_;
};

// All of them.

using Normalizers = Registry<AttentionNormalizer>;

Normalizers make_normalizers() {
  Normalizers all;
  for (const NormalizerRow& row : kNormalizerRows) all.add(std::make_unique<FixedNormalizer>(row));
  all.add(std::make_unique<SquaredReluFixed>());
  all.add(std::make_unique<LogN>());
  all.add(std::make_unique<Gauss>());
  all.add(std::make_unique<Ssmax<false>>());
  all.add(std::make_unique<Ssmax<true>>());
  all.add(std::make_unique<Cosa>());
  return all;
}

const Normalizers& all_normalizers() {
  static const Normalizers kAll = make_normalizers();
  return kAll;
}

std::string parameter_text(const AttentionNormalizer& normalizer) {
  return comma_list(normalizer.parameters(), [](const NormalizerParameter& p) {
    return fmt::format("{}={}", p.name, p.value);
  });
}

std::vector<VariantInfo> list_variants() {
  std::vector<VariantInfo> out;
  out.reserve(normalizers().size());
  for (const AttentionNormalizer* normalizer : normalizers()) {
    VariantInfo info;
    info.kind = "normalizer";
    info.name = normalizer->name();
    info.parameters = parameter_text(*normalizer);
    if (normalizer->offset_of_learned()) info.parameters += "; one trained s per head";
    info.masks = "any";
    info.cost = normalizer->unit_length() == UnitLength::kNeither ? "h n²" : "h n² + n d";
    info.source = normalizer->source();
    info.use = {{info.kind, info.name}};
    out.push_back(std::move(info));
  }
  return out;
}

const VariantSource kVariants(list_variants);

}  // namespace

double AttentionNormalizer::temperature(Index /*visible*/) const { return 1; }
double AttentionNormalizer::constant(Index /*visible*/) const { return 1; }
UnitLength AttentionNormalizer::unit_length() const { return UnitLength::kNeither; }
bool AttentionNormalizer::scaled() const { return true; }
std::optional<double> AttentionNormalizer::offset_of_learned() const { return std::nullopt; }
std::vector<NormalizerParameter> AttentionNormalizer::parameters() const { return {}; }
std::unique_ptr<const AttentionNormalizer> AttentionNormalizer::with(
    std::span<const double> /*values*/) const {
  MASQUE_CHECK(false);
  return nullptr;
}

std::span<const AttentionNormalizer* const> normalizers() { return all_normalizers().all(); }

const AttentionNormalizer* find_normalizer(std::string_view name) {
  return all_normalizers().find(name);
}

std::shared_ptr<const AttentionNormalizer> parse_normalizer(std::string_view text) {
  NamedArguments arguments(text);
  const AttentionNormalizer* plain = find_normalizer(arguments.name());
  if (plain == nullptr) {
    std::vector<std::string_view> names;
    for (const AttentionNormalizer* other : normalizers()) names.push_back(other->name());
    throw UsageError(fmt::format("no normalizer '{}', expected one of {}{}",
                                 escape(arguments.name()), all_normalizers().names(),
                                 did_you_mean(arguments.name(), names)));
  }
  std::vector<double> values;
  bool own = true;
  for (const NormalizerParameter& p : plain->parameters()) {
    values.push_back(arguments.number(p.name, p.value, p.least, p.most));
    own = own && values.back() == p.value;
  }
  arguments.check_all_known();
  // The list owns it and outlives all.
  if (own) return {std::shared_ptr<const AttentionNormalizer>(), plain};
  return plain->with(values);
}

}  // namespace masque::nn
