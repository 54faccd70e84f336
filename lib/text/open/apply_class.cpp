// What the class that a folder names, and the files next to a tokenizer.json, change in it.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "text/open/convert_spiece.hpp"
#include "text/open/tokenizer_files.hpp"
#include "text/step/decoder.hpp"
#include "text/step/json_fields.hpp"
#include "text/step/post_processor.hpp"

namespace masque::text {

namespace {

bool is_one_of(std::string_view kind, std::initializer_list<std::string_view> kinds) {
  return std::ranges::find(kinds, kind) != kinds.end();
}

bool is_byte_level(std::string_view kind) {
  return is_one_of(kind, {"roberta", "deberta", "gpt2", "gpt_neox", "qwen2", "clip", "whisper"});
}

bool is_unigram(std::string_view kind) {
  return is_one_of(kind, {"albert", "xlnet", "t5", "deberta-v2", "xlm-roberta", "camembert",
                          "mbart", "mbart50"});
}

/// The post-processor that the constructor of the class `kind` sets, whatever tokenizer.json has;
/// empty if it sets none.
std::string processor_of(std::string_view kind, const TokenFinder& find,
                         const FolderConfig& config) {
  if (is_one_of(kind, {"bert", "roformer", "mpnet"}))
    return words_processor(find, config, kind == "mpnet");
  if (is_one_of(kind, {"roberta", "deberta", "clip", "whisper"}))
    return byte_level_processor(std::string(kind), find, config);
  if (is_one_of(kind, {"t5", "deberta-v2", "xlnet", "xlm-roberta", "camembert", "mbart", "mbart50",
                       "nllb"}))
    return spiece_processor(find, config, std::string(kind));
  return {};
}

/// Refuses a setting of tokenizer_config.json that the class takes although tokenizer.json has
/// another: with both, the ids would be those of neither.
class SettingCheck {
 public:
  SettingCheck(const FolderConfig& config, const JsonValue& json) : config_(config), json_(json) {}

  /// A flag of the step `type` of `part`; where that is null, the flag `otherwise` counts.
  void flag(const char* name, const char* part, const char* type, const char* member,
            const char* otherwise = "") const {
    const JsonValue* step = step_of(json_, part, type);
    const JsonValue* is = step == nullptr ? nullptr : step->find(member);
    if (is != nullptr && is->is(JsonKind::kNull)) is = step->find(otherwise);
    if (is != nullptr && is->is(JsonKind::kBool)) same(name, is->text == "true");
  }

  /// Whether `part` has a step of `type`, or has none with `inverse`.
  void step(const char* name, const char* part, const char* type, bool inverse = false) const {
    const bool is = (step_of(json_, part, type) != nullptr) != inverse;
    same(name, is);
  }

  /// The prepend_scheme that stands for true and for false.
  void scheme(const char* name, std::string_view yes, std::string_view no) const {
    const JsonValue* step = step_of(json_, "pre_tokenizer", "Metaspace");
    const std::string is = step == nullptr ? "" : step->text_of("prepend_scheme");
    if (is == yes || is == no) same(name, is == yes);
  }

  /// A number.
  void number(const char* name, TokenId is) const {
    const JsonValue* value = config_.settings.find(name);
    if (value != nullptr && value->is(JsonKind::kNumber) && value->text != std::to_string(is))
      refuse(name, value->text, std::to_string(is));
  }

  /// What must not be an object, which would replace the languages.
  void list(const char* name) const {
    const JsonValue* value = config_.settings.find(name);
    if (value != nullptr && value->is(JsonKind::kObject)) refuse(name, "an object", "a list");
  }

  /// The token that stands for what is unknown.
  void unknown(const std::string& is) const {
    const auto value = role_of(config_, "unk");
    if (value && !is.empty() && *value != is) refuse("unk_token", *value, is);
  }

 private:
  void same(const char* name, bool is) const {
    const JsonValue* value = config_.settings.find(name);
    if (value == nullptr || !value->is(JsonKind::kBool) || (value->text == "true") == is) return;
    refuse(name, value->text, is ? "true" : "false");
  }

  void refuse(const char* name, std::string_view value, std::string_view is) const {
    throw InputError(config_.path,
                     fmt::format("{} is {}, but {} in tokenizer.json: {} of transformers takes the "
                                 "first; expected the same in both",
                                 name, escape(value), escape(is), config_.tokenizer.named));
  }

  const FolderConfig& config_;
  const JsonValue& json_;
};

void check_settings(const FolderConfig& config, const JsonValue& json, std::string_view kind,
                    const TokenizerParts& parts) {
  const SettingCheck check(config, json);
  if (is_one_of(kind, {"bert", "mpnet", "roformer"})) {
    if (!config.tokenizer.always_lowers)
      check.flag("do_lower_case", "normalizer", "BertNormalizer", "lowercase");
    check.flag("strip_accents", "normalizer", "BertNormalizer", "strip_accents", "lowercase");
    check.flag("tokenize_chinese_chars", "normalizer", "BertNormalizer", "handle_chinese_chars");
    if (const JsonValue* model = json.find("model")) check.unknown(model->text_of("unk_token"));
  }
  if (is_one_of(kind, {"gpt2", "gpt_neox", "qwen2", "roberta", "deberta", "whisper"}))
    check.flag("add_prefix_space", "pre_tokenizer", "ByteLevel", "add_prefix_space");
  if (is_one_of(kind, {"albert", "xlm-roberta", "camembert"}))
    check.scheme("add_prefix_space", "always", "never");
  if (kind == "deberta-v2") check.scheme("add_prefix_space", "always", "first");
  if (kind == "llama") {
    check.scheme("legacy", "always", "first");
    check.scheme("add_prefix_space", "first", "never");
    check.scheme("add_prefix_space", "always", "never");
  }
  if (is_one_of(kind, {"albert", "xlnet", "deberta-v2"}))
    check.step("do_lower_case", "normalizer", "Lowercase");
  if (kind == "albert") check.step("keep_accents", "normalizer", "StripAccents", true);
  if (kind == "deberta-v2") check.step("split_by_punct", "pre_tokenizer", "Punctuation");
  if (kind == "xlnet") check.number("unk_id", parts.unknown_as_text.value_or(0));
  if (kind == "nllb") check.list("extra_special_tokens");
  if (kind == "camembert" && parts.unknown_as_text)
    check.unknown(std::string(parts.steps.model->token(*parts.unknown_as_text)));
}

/// Refuses tokens that the files next to tokenizer.json number otherwise, or lack.
void check_ids(const FolderConfig& config, const TokenizerParts& parts) {
  const bool replaces = config.settings.find("added_tokens_decoder") != nullptr;
  if (!replaces && config.added_ids.members.empty()) return;
  const TokenFinder find = finder_with(parts.steps.model, parts.added);
  const auto taken = [&](TokenId id) {
    return (id >= 0 && static_cast<std::size_t>(id) < parts.steps.model->size()) ||
           std::ranges::any_of(parts.added,
                               [&](const AddedToken& token) { return token.id == id; });
  };
  std::vector<AddedToken> listed;
  FolderConfig ids = config;
  ids.roles.clear();
  std::erase_if(ids.settings.members,
                [](const JsonMember& member) { return member.name != "added_tokens_decoder"; });
  add_folder_tokens(ids, listed);
  std::vector<AddedToken> named;
  add_folder_tokens(config, named);
  const auto has = [](const std::vector<AddedToken>& tokens, const AddedToken& token) {
    return std::ranges::find(tokens, token.content, &AddedToken::content) != tokens.end();
  };
  for (const AddedToken& token : parts.added) {
    // One that is not listed, but has a role, is added again: special, and with a new id unless the
    // vocabulary has it.
    const bool again =
        token.special && has(named, token) && parts.steps.model->find(token.content).has_value();
    if (!replaces || again || has(listed, token)) continue;
    throw InputError(config.path,
                     fmt::format("added_tokens_decoder lacks '{}' of tokenizer.json; expected all "
                                 "added tokens",
                                 escape(token.content)));
  }
  for (const AddedToken& token : listed) {
    const auto own = find(token.content);
    if (own ? *own == token.id : !taken(token.id)) continue;
    throw InputError(config.path, fmt::format("the token '{}' has id {} next to tokenizer.json, in "
                                              "which {}; expected the same in both",
                                              escape(token.content), token.id,
                                              own ? fmt::format("it has id {}", *own)
                                                  : std::string("another token has it")));
  }
}

/// The steps of the class `kind` as its constructor builds them, whatever tokenizer.json has; no
/// pre-tokenizer: not known here.
TokenizerText steps_of(const std::string& kind, const FolderConfig& config, const TokenFinder& find,
                       bool precompiled) {
  if (is_one_of(kind, {"bert", "mpnet"})) {
    return {.normalizer = words_normalizer(config),
            .pre_tokenizer = R"({"type":"BertPreTokenizer"})"};
  }
  // Its bytes are not compared.
  const std::string charsmap = precompiled ? "any" : "";
  if (is_byte_level(kind)) return byte_level_steps(kind, config, find);
  if (is_one_of(kind, {"nllb", "llama", "gemma"})) return spiece_bpe_steps(charsmap, config, kind);
  if (is_unigram(kind)) return unigram_steps(charsmap, config, kind);
  return {};
}

/// What a step does: its type, and what of its fields changes ids.
struct Step {
  std::string type;
  std::vector<std::pair<std::string, std::string>> fields = {};  ///< name, value
  bool operator==(const Step&) const = default;
};

/// The steps of `part`, of Sequences theirs.
void list_steps(const JsonValue& part, std::vector<Step>& out) {
  if (!part.is(JsonKind::kObject)) return;
  for (const char* list : {"normalizers", "pretokenizers"}) {
    const JsonValue* items = part.find(list);
    if (items == nullptr) continue;
    for (const JsonValue& item : items->items) list_steps(item, out);
    return;
  }
  Step step{.type = part.text_of("type")};
  for (const char* text : {"content", "behavior"})
    step.fields.emplace_back(text, part.text_of(text));
  if (const JsonValue* pattern = part.find("pattern")) {
    for (const JsonMember& member : pattern->members)
      step.fields.emplace_back(member.name, member.value.text);
  }
  const auto flag = [&](const char* name, const std::string& otherwise) {
    const JsonValue* value = part.find(name);
    const bool given = value != nullptr && !value->is(JsonKind::kNull);
    step.fields.emplace_back(name, given ? value->text : otherwise);
  };
  if (step.type == "BertNormalizer") {
    flag("clean_text", "true");
    flag("handle_chinese_chars", "true");
    flag("lowercase", "true");
    flag("strip_accents", std::string(step.fields.back().second));
  }
  if (step.type == "ByteLevel") {
    flag("add_prefix_space", "true");
    flag("use_regex", "true");
  }
  if (step.type == "Metaspace") {
    const JsonValue* prefix = part.find("add_prefix_space");  // of older files
    flag("prepend_scheme", prefix != nullptr && prefix->text == "false" ? "never" : "always");
  }
  out.push_back(std::move(step));
}

/// The types of `steps`; of one that has the same type in `others` also the fields that differ.
std::string names_of(const std::vector<Step>& steps, const std::vector<Step>& others) {
  std::string out;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto& [type, fields] = steps[i];
    out += (out.empty() ? "" : ", ") + type;
    if (i >= others.size() || others[i].type != type) continue;
    for (const auto& [name, value] : fields) {
      const auto other =
          std::ranges::find(others[i].fields, name, &decltype(fields)::value_type::first);
      if (other == others[i].fields.end() || other->second != value)
        out += fmt::format(" {} {}", name, value.empty() ? "none" : value);
    }
  }
  return out.empty() ? "none" : out;
}

/// The type of model that the class `kind` builds, whatever tokenizer.json has; empty: not known
/// here.
std::string_view model_of(std::string_view kind) {
  if (is_one_of(kind, {"bert", "mpnet", "roformer"})) return "WordPiece";
  if (is_byte_level(kind) || is_one_of(kind, {"nllb", "llama", "gemma"})) return "BPE";
  if (is_unigram(kind)) return "Unigram";
  return {};
}

/// Whether tokenizer.json, which is followed, has another type of model than the class in
/// transformers; notes it.
bool notes_other_model(const JsonValue& json, const FolderConfig& config, std::string_view kind,
                       TokenizerParts& parts) {
  const std::string_view built = model_of(kind);
  const JsonValue* model = json.find("model");
  const std::string own = model == nullptr ? "" : model->text_of("type");
  if (built.empty() || own.empty() || own == built) return false;
  parts.warnings.push_back(
      fmt::format("the model of tokenizer.json ({}) counts, but transformers 5 builds {} for {}: "
                  "ids differ",
                  escape(own), built, config.tokenizer.named));
  return true;
}

/// Notes where tokenizer.json, which is followed, has other steps than the class in transformers.
void note_other_steps(const JsonValue& json, const FolderConfig& config, const std::string& kind,
                      TokenizerParts& parts) {
  const bool precompiled = step_of(json, "normalizer", "Precompiled") != nullptr;
  const TokenizerText built =
      steps_of(kind, config, finder_with(parts.steps.model, parts.added), precompiled);
  if (built.pre_tokenizer == "null") return;
  for (const auto& [name, text] : {std::pair{"normalizer", &built.normalizer},
                                   std::pair{"pre_tokenizer", &built.pre_tokenizer}}) {
    std::vector<Step> own, of_class;
    if (const JsonValue* part = json.find(name)) list_steps(*part, own);
    list_steps(parse_json_file(*text, parts.path), of_class);
    if (own == of_class) continue;
    parts.warnings.push_back(
        fmt::format("the {} of tokenizer.json ({}) counts, but transformers 5 builds another ({}) "
                    "for {}: ids of some texts differ",
                    name, escape(names_of(own, of_class)), escape(names_of(of_class, own)),
                    config.tokenizer.named));
  }
}

/// Notes another unknown token than the class has, whose default counts where the folder names
/// none.
void note_other_unknown(const JsonValue& json, const FolderConfig& config, const std::string& kind,
                        TokenizerParts& parts) {
  std::string own;
  if (is_one_of(kind, {"bert", "mpnet", "roformer"})) {
    if (const JsonValue* model = json.find("model")) own = model->text_of("unk_token");
  } else if (kind == "camembert" && parts.unknown_as_text) {
    own = parts.steps.model->token(*parts.unknown_as_text);
  }
  const auto of_class = role_of(config, "unk");
  if (own.empty() || !of_class || own == *of_class) return;
  parts.warnings.push_back(
      fmt::format("the unk_token of tokenizer.json ('{}') counts, but transformers 5 takes '{}' "
                  "for {}: ids of some texts differ",
                  escape(own), escape(*of_class), config.tokenizer.named));
}

/// Notes special tokens that the class adds to those of tokenizer.json (Llama's and Gemma's, T5's
/// sentinels, the languages of mBART and NLLB), and returns them.
std::vector<std::string> note_missing_tokens(const FolderConfig& config, const std::string& kind,
                                             TokenizerParts& parts) {
  std::vector<std::string> names;
  const std::span<const ClassRole> roles = spiece_bpe_roles(kind);
  const FolderConfig with_roles = with_class_roles(config, roles);
  for (const ClassRole& role : roles)
    if (const auto token = role_of(with_roles, role.role)) names.push_back(*token);
  const JsonValue* extra = config.settings.find("extra_special_tokens");
  const bool listed = extra != nullptr && !extra->is(JsonKind::kObject);
  if (!listed) {
    for (std::string& token : class_tokens({}, config, kind)) names.push_back(std::move(token));
  }
  std::erase_if(names, [&](const std::string& name) {
    return std::ranges::find(parts.added, name, &AddedToken::content) != parts.added.end();
  });
  if (names.empty()) return names;
  const std::string more = names.size() > 1 ? fmt::format(" and {} more", names.size() - 1) : "";
  parts.warnings.push_back(
      fmt::format("transformers 5 adds special tokens for {} that tokenizer.json does not have: "
                  "'{}'{}: ids of texts with them differ",
                  config.tokenizer.named, escape(names.front()), more));
  return names;
}

/// Refuses a template whose tokens the class adds to those of tokenizer.json: every text would have
/// other ids, and one that no row of the model's table is for.
void check_template(const std::vector<std::string>& missing, const std::vector<std::string>& needed,
                    const FolderConfig& config, const std::string& path) {
  for (const std::string& token : needed) {
    if (std::ranges::find(missing, token) == missing.end()) continue;
    throw InputError(path, fmt::format("no token '{}', which the template of {} needs and "
                                       "transformers 5 adds with a new id: expected a "
                                       "vocabulary that has it",
                                       escape(token), config.tokenizer.named));
  }
}

}  // namespace

std::span<const ClassRole> roles_of_class(std::string_view kind) {
  if (is_one_of(kind, {"bert", "roformer"})) return word_roles(false);
  if (kind == "mpnet") return word_roles(true);
  if (is_byte_level(kind)) return byte_level_roles(kind);
  return spiece_class_roles(kind);
}

void apply_class(const JsonValue& json, const FolderConfig& folder, TokenizerParts& parts) {
  const std::string& kind = folder.tokenizer.architecture;
  const bool by_file = kind.empty() || folder.tokenizer.is_general;
  const bool other_model = !by_file && notes_other_model(json, folder, kind, parts);
  if (by_file || other_model) {
    check_ids(folder, parts);
    add_folder_tokens(folder, parts.added);
    return;
  }
  parts.kind = kind;
  FolderConfig config = with_class_roles(folder, roles_of_class(kind));
  check_ids(config, parts);
  check_settings(folder, json, kind, parts);
  set_mask_flags(config, kind);
  add_folder_tokens(config, parts.added);
  note_other_steps(json, config, kind, parts);
  note_other_unknown(json, config, kind, parts);
  const std::vector<std::string> missing = note_missing_tokens(config, kind, parts);
  if (kind == "qwen2") reset_special_flags(config, parts.added);
  if (kind == "clip")
    parts.decoder = make_decoder(parse_json_file(clip_decoder(), parts.path), parts.path);
  const TokenFinder find = finder_with(parts.steps.model, parts.added);
  std::vector<std::string> absent;
  const TokenFinder noting = [&](std::string_view token) {
    const auto id = find(token);
    if (!id) absent.emplace_back(token);
    return id;
  };
  const std::string processor = processor_of(kind, noting, config);
  check_template(missing, absent, config, parts.path);
  if (processor.empty() || processor == "null") return;
  parts.post_processor = make_post_processor(parse_json_file(processor, parts.path), parts.path);
  if (!has_targets(config, kind)) return;
  const std::string target = spiece_processor(find, config, std::string(kind), true);
  parts.target_processor = make_post_processor(parse_json_file(target, parts.path), parts.path);
}

}  // namespace masque::text
