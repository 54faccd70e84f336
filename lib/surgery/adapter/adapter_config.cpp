#include "surgery/adapter/adapter_config.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "base/word_list.hpp"

namespace masque::surgery {

namespace {

constexpr std::string_view kAdapterConfig = "adapter_config.json";

/// Keys whose values change nothing for the sum of weight and product: what training needed, which
/// modules there are (the tensors say it), names.
constexpr std::string_view kHarmless =
    "auto_mapping base_model_name_or_path corda_config ensure_weight_tying eva_config "
    "exclude_modules inference_mode layers_pattern layers_to_transform lora_dropout lora_ga_config "
    "megatron_core modules_to_save peft_version qalora_group_size revision runtime_config "
    "target_modules task_type bias";
/// Keys that stand for another computation if they have a value other than null, false, [] or {}.
constexpr std::string_view kOtherwise =
    "alora_invocation_tokens arrow_config kasa_config layer_replication loftq_config lora_bias "
    "megatron_config monteclora_config target_parameters trainable_token_indices use_bdlora "
    "use_dora use_qalora velora_config";
/// Initial values that leave the base as it is. Others (pissa, olora, …) change it first.
constexpr std::string_view kInits = "true false gaussian eva orthogonal";
constexpr std::string_view kUsed =
    "r lora_alpha rank_pattern alpha_pattern use_rslora fan_in_fan_out peft_type "
    "init_lora_weights";

bool is_off(const JsonValue& value) {
  switch (value.kind) {
    case JsonKind::kNull: return true;
    case JsonKind::kArray: return value.items.empty();
    case JsonKind::kObject: return value.members.empty();
    default: return value.text == "false";
  }
}

store::ModelConfig read_config(const std::string& folder) {
  const std::string path = join(folder, std::string(kAdapterConfig));
  if (!exists(path))
    throw InputError(folder, fmt::format("no {}, expected a PEFT adapter", kAdapterConfig));
  return store::ModelConfig::read(path);
}

}  // namespace

AdapterConfig::AdapterConfig(const std::string& folder) : config_(read_config(folder)) {
  const std::string type = config_.string("peft_type").value_or("");
  if (type != "LORA") {
    throw InputError(config_.path(), fmt::format("peft_type is {}, expected \"LORA\"",
                                                 type.empty() ? "absent" : quote_json(type)));
  }
  const JsonValue root = parse_json_file(config_.text(), config_.path());
  for (const JsonMember& member : root.members) {
    const std::string& name = member.name;
    const JsonValue& value = member.value;
    const bool other_start =
        name == "init_lora_weights" && !value.is(JsonKind::kNull) && !has_word(kInits, value.text);
    if (other_start || (has_word(kOtherwise, name) && !is_off(value))) {
      throw InputError(
          config_.path(),
          fmt::format("{} is {}, expected {}: such adapters cannot be merged", name,
                      escape(config_.spelling(name).substr(0, 60)),
                      other_start ? "true, false, gaussian, eva or orthogonal" : "no value"));
    }
    if (!has_word(kUsed, name) && !has_word(kHarmless, name) && !has_word(kOtherwise, name))
      unknown_.push_back(name);
  }
  rank_ = config_.number("r").value_or(8);
  alpha_ = config_.number("lora_alpha").value_or(8);
  if (!std::isfinite(alpha_))
    throw InputError(config_.path(), "lora_alpha is not finite, expected a number");
  use_rslora_ = config_.flag("use_rslora").value_or(false);
  fan_in_fan_out_ = config_.flag("fan_in_fan_out").value_or(false);
  ranks_ = patterns("rank_pattern");
  alphas_ = patterns("alpha_pattern");
}

std::vector<AdapterConfig::Pattern> AdapterConfig::patterns(const std::string& name) const {
  std::vector<Pattern> found;
  if (!config_.has(name)) return found;
  const JsonValue root = parse_json_file(config_.text(), config_.path());
  for (const JsonMember& member : root.find(name)->members) {
    const auto value = member.value.number();
    if (!value || !std::isfinite(*value)) {
      throw InputError(config_.path(), fmt::format("{}: '{}' has no number, expected one", name,
                                                   escape(member.name)));
    }
    const auto refuse = [path = config_.path(), name, key = member.name](const std::string& why) {
      throw InputError(path, fmt::format("{}: '{}': {}", name, escape(key), why));
    };
    // As PEFT matches them: the whole name of a module, or its end after a dot.
    found.push_back({std::make_unique<Regex>(fmt::format("\\A(?:.*\\.)?(?:{})\\z", member.name),
                                             RegexDialect::kOniguruma, refuse),
                     *value});
  }
  return found;
}

double AdapterConfig::value_of(const std::vector<Pattern>& patterns, const std::string& module,
                               double fallback) {
  for (const Pattern& pattern : patterns) {
    if (RegexSearch(*pattern.modules, module).find(0)) return pattern.value;
  }
  return fallback;
}

double AdapterConfig::scale(const std::string& module, std::uint64_t rank) const {
  const double expected = value_of(ranks_, module, rank_);
  if (expected != static_cast<double>(rank)) {
    throw InputError(config_.path(), fmt::format("rank of '{}' is {}, expected {}, that of its "
                                                 "tensors (r, rank_pattern)",
                                                 escape(module), expected, rank));
  }
  const double alpha = value_of(alphas_, module, alpha_);
  return alpha / (use_rslora_ ? std::sqrt(expected) : expected);
}

}  // namespace masque::surgery
