// What people should know of the files next to a vocabulary: settings that are not known, and
// Mistral's wrong expression.
#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "base/comma_list.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/parse_number.hpp"
#include "base/split.hpp"
#include "text/convert.hpp"
#include "text/tokenizer_files.hpp"

namespace masque::text {

namespace {

// Settings that are read, and those that change no id: transformers 5 takes them for other things
// or not at all.
constexpr std::string_view kKnownSettings =
    "add_bos_token add_eos_token add_prefix_space added_tokens_decoder additional_special_tokens "
    "auto_map backend chat_template clean_up_tokenization_spaces "
    "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output default_to_notebook "
    "device "
    "device_map do_basic_tokenize do_lower_case errors extra_ids extra_special_tokens "
    "fix_mistral_regex from_slow full_tokenizer_file init_inputs is_local keep_accents language "
    "legacy legacy_behaviour local_files_only max_len max_length merges_file "
    "model_input_names model_max_length model_specific_special_tokens name_or_path never_split "
    "normalizer_file pad_to_multiple_of pad_token_type_id padding_side predict_timestamps "
    "processor_class remove_space return_attention_mask return_token_type_ids sp_model_kwargs "
    "spaces_between_special_tokens special_tokens_map_file split_by_punct split_special_tokens "
    "src_lang stride strip_accents task tgt_lang tokenize_chinese_chars tokenizer_class "
    "tokenizer_file tokenizer_type transformers_version trim_offsets truncation_side "
    "truncation_strategy trust_remote_code unk_id use_default_system_prompt use_fast verbose "
    "vocab_file";

// What transformers sets with "fix_mistral_regex".
constexpr std::string_view kMistralRegex =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

bool is_known_setting(std::string_view name) {
  static const std::vector<std::string_view> kKnown = split_terminated(kKnownSettings, ' ');
  return name.ends_with("_token") || name.ends_with("_token_id") || name.starts_with("_") ||
         std::ranges::find(kKnown, name) != kKnown.end();
}

/// Whether transformers takes a tokenizer of this size next to `model`, a config.json, for one of
/// Mistral's with the wrong expression.
bool is_wrong_mistral(const JsonValue& model, const TokenizerParts& parts) {
  constexpr std::size_t kLeast = 100'000;
  std::size_t count = parts.steps.model->count();
  for (const AddedToken& token : parts.added)
    count += parts.steps.model->find(token.content) ? 0U : 1U;
  if (count <= kLeast || !model.is(JsonKind::kObject)) return false;
  const std::string version = model.text_of("transformers_version");
  const auto major = parse_number<int>(std::string_view(version).substr(0, version.find('.')));
  if (major && *major >= 5) return false;
  const std::string type = model.text_of("model_type");
  constexpr std::array kTypes{"mistral", "mistral3", "voxtral", "ministral", "pixtral"};
  return type.empty() || std::ranges::find(kTypes, type) != kTypes.end();
}

/// The expression of the first step that cuts; nullptr if there is none.
const JsonValue* first_regex(const JsonValue& json) {
  const JsonValue* split = step_of(json, "pre_tokenizer", "Split");
  const JsonValue* pattern = split == nullptr ? nullptr : split->find("pattern");
  return pattern == nullptr ? nullptr : pattern->find("Regex");
}

}  // namespace

void note_tokenizer_json(const JsonValue& json, const FolderConfig& config, TokenizerParts& parts) {
  const JsonValue* regex = first_regex(json);
  if (regex == nullptr || regex->text == kMistralRegex || !is_wrong_mistral(config.model, parts))
    return;
  if (config.settings.find("fix_mistral_regex") == nullptr) {
    parts.warnings.emplace_back(
        "the pre-tokenizer has the expression that is known to be wrong for Mistral's models: "
        "transformers corrects it with fix_mistral_regex=True, tokenizer.json counts");
  } else if (setting(config, "fix_mistral_regex", false)) {
    throw InputError(config.path,
                     "fix_mistral_regex is set: write the right expression into "
                     "tokenizer.json instead, which is read as it stands");
  }
}

void note_unknown_settings(const FolderConfig& config, TokenizerParts& parts) {
  std::vector<std::string> unknown;
  for (const JsonMember& member : config.settings.members) {
    if (!is_known_setting(member.name)) unknown.push_back(fmt::format("'{}'", escape(member.name)));
  }
  if (unknown.empty()) return;
  parts.warnings.push_back(fmt::format(
      "settings of tokenizer_config.json that are not known here: {}", comma_list(unknown)));
}

}  // namespace masque::text
