// adapter_config.json of PEFT.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/regex.hpp"
#include "store/config.hpp"

namespace masque::surgery {

/// What adapter_config.json says of a LoRA adapter. Every key is used, changes nothing, is refused,
/// or unknown.
class AdapterConfig {
 public:
  /// Reads the adapter_config.json of `folder`. Throws InputError if there is none, if it is of
  /// another kind than LoRA, and for keys with values that change what the adapter computes.
  explicit AdapterConfig(const std::string& folder);

  /// What the product of the pair of `module` ("model.layers.0.self_attn.q_proj"), whose rank is
  /// `rank`, is multiplied by. Throws InputError if the config says another rank.
  double scale(const std::string& module, std::uint64_t rank) const;
  /// fan_in_fan_out: weights are (in, out), where their shape does not say.
  bool fan_in_fan_out() const { return fan_in_fan_out_; }
  /// Keys that are not known.
  const std::vector<std::string>& unknown() const { return unknown_; }

 private:
  struct Pattern {
    std::unique_ptr<Regex> modules;
    double value = 0;
  };
  std::vector<Pattern> patterns(const std::string& name) const;
  static double value_of(const std::vector<Pattern>& patterns, const std::string& module,
                         double fallback);

  store::ModelConfig config_;
  double rank_ = 8, alpha_ = 8;
  bool use_rslora_ = false, fan_in_fan_out_ = false;
  std::vector<Pattern> ranks_, alphas_;
  std::vector<std::string> unknown_;
};

}  // namespace masque::surgery
