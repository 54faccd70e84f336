// log_n: softmax of s_ij · log max(n_i, clip) / log base, so that the entropy of weights depends
// less on the length: at n_i = base it is softmax. softmax_plus is base 512 with clip 16.
#include <algorithm>
#include <cmath>

#include "nn/normalizer.hpp"

namespace masque::nn {

namespace {

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

const NormalizerRegistration kRegistration(std::make_unique<LogN>());

}  // namespace

}  // namespace masque::nn
