#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/string/comma_list.hpp"
#include "base/string/parse_number.hpp"
#include "base/string/split.hpp"
#include "text/open/convert.hpp"
#include "text/open/google_folder.hpp"
#include "text/open/tokenizer_class.hpp"
#include "text/open/tokenizer_files.hpp"
#include "text/step/json_fields.hpp"

namespace masque::text {

namespace {

constexpr std::uint64_t kMaxConfig = 64 << 20;

/// The document in a file of a folder; null if there is none.
JsonValue read_optional(const std::string& folder, const char* name) {
  const std::string path = join(folder, name);
  if (!exists(path)) return {};
  return parse_json_file(InputFile::open(path).read_all(kMaxConfig), path);
}

/// The string that is the member `name`; nullptr if there is none.
const std::string* text_member(const JsonValue& json, const char* name) {
  const JsonValue* value = json.find(name);
  return value != nullptr && value->is(JsonKind::kString) && !value->text.empty() ? &value->text
                                                                                  : nullptr;
}

/// The class of its own that "auto_map" of tokenizer_config.json names; nullptr if none, and if it
/// is one that is known: code is never run.
const JsonValue* own_code(const JsonValue& settings) {
  const JsonValue* map = settings.find("auto_map");
  if (map == nullptr) return nullptr;
  const JsonValue* classes = map->is(JsonKind::kObject) ? map->find("AutoTokenizer") : map;
  if (classes == nullptr) return nullptr;
  const auto is_unknown = [](const JsonValue& item) {
    return item.is(JsonKind::kString) && !item.text.ends_with("tokenization_dream.DreamTokenizer");
  };
  if (classes->is(JsonKind::kString)) return is_unknown(*classes) ? classes : nullptr;
  const auto named = std::ranges::find_if(classes->items, is_unknown);
  return named == classes->items.end() ? nullptr : &*named;
}

TokenizerName by_class(std::string_view name, const char* file) {
  TokenizerName out;
  out.named = fmt::format("tokenizer_class '{}' in {}", escape(name), file);
  if (name == "BertJapaneseTokenizer") out.named += " (words by MeCab)";
  if (const TokenizerClass* known = find_tokenizer_class(name)) {
    out.architecture = known->architecture;
    out.file = known->file;
    out.always_lowers = always_lowers(known->name);
  }
  return out;
}

TokenizerName by_type(std::string_view type) {
  TokenizerName out;
  if (is_own_type(type)) return out;
  out.named = fmt::format("model_type '{}' in config.json", escape(type));
  out.is_type = true;
  if (const TokenizerClass* known = tokenizer_class_of_type(type)) {
    out.architecture = known->architecture;
    out.file = known->file;
    out.always_lowers = always_lowers(known->name);
    // transformers has no configuration of the last two types.
    out.is_general = is_general_class(known->name) || type == "mbart50" || type == "nllb";
  }
  return out;
}

/// What a folder with these tokenizer_config.json and config.json means, as transformers'
/// AutoTokenizer takes it.
TokenizerName tokenizer_name(const JsonValue& settings, const JsonValue& config) {
  const std::string* type = text_member(config, "model_type");
  // A family with changes: what it was is what its tokenizer is for.
  if (const std::string* base = text_member(config, "base_model_type")) type = base;
  const char* file = "tokenizer_config.json";
  const std::string* name = text_member(settings, "tokenizer_class");
  if (name == nullptr) {
    name = text_member(config, "tokenizer_class");
    file = "config.json";
  }
  const bool general = name != nullptr && is_general_class(*name);
  const bool overruled = type != nullptr && overrules_class(*type);
  TokenizerName out;
  if (type != nullptr && (name == nullptr || general || overruled)) {
    out = by_type(*type);
    out.is_general = out.is_general || (general && !overruled);
  } else if (name != nullptr && !general) {
    out = by_class(*name, file);
  }
  out.spiece_by_rules =
      (general && !overruled) || (type != nullptr && reads_any_spiece(*type, name != nullptr));
  return out;
}

/// Whether Python takes `json` for true: a list or an object with items.
bool is_filled(const JsonValue* json) {
  return json != nullptr && (!json->items.empty() || !json->members.empty());
}

void set_member(JsonValue& json, JsonMember member) {
  const auto found = std::ranges::find(json.members, member.name, &JsonMember::name);
  if (found == json.members.end()) {
    json.members.push_back(std::move(member));
  } else {
    found->value = std::move(member.value);
  }
}

/// Gives additional_special_tokens its name of today, unless that is in use.
void rename_additional(JsonValue& settings) {
  if (is_filled(settings.find("extra_special_tokens"))) return;
  if (settings.find("additional_special_tokens") == nullptr) return;
  std::erase_if(settings.members,
                [](const JsonMember& member) { return member.name == "extra_special_tokens"; });
  std::ranges::find(settings.members, "additional_special_tokens", &JsonMember::name)->name =
      "extra_special_tokens";
}

/// Puts the members of special_tokens_map.json into `settings`, where they go first; a list of
/// special tokens is added to that of `settings`.
void merge_token_map(JsonValue map, JsonValue& settings) {
  if (!map.is(JsonKind::kObject)) return;
  settings.kind = JsonKind::kObject;
  for (JsonMember& member : map.members) {
    const JsonValue* own = settings.find(member.name);
    if (member.name == "extra_special_tokens" && own != nullptr && own->is(JsonKind::kArray) &&
        member.value.is(JsonKind::kArray)) {
      JsonValue both = *own;
      std::ranges::move(member.value.items, std::back_inserter(both.items));
      member.value = std::move(both);
    }
    set_member(settings, std::move(member));
  }
}

}  // namespace

FolderConfig read_folder_config(const std::string& folder) {
  FolderConfig out;
  out.path = join(folder, "tokenizer_config.json");
  out.settings = read_optional(folder, "tokenizer_config.json");
  if (const auto text = tokenizer_config_by_name(folder))
    out.settings = parse_json_file(*text, out.path);
  out.model = read_optional(folder, "config.json");
  out.tokenizer = tokenizer_name(out.settings, out.model);
  out.tokenizer.is_beside = true;
  out.added_ids = read_optional(folder, "added_tokens.json");
  rename_additional(out.settings);
  // As transformers: with added_tokens_decoder the map is an old copy, else it goes first.
  JsonValue map = read_optional(folder, "special_tokens_map.json");
  if (out.settings.find("added_tokens_decoder") != nullptr) {
    read_role_names(map, out.old_roles);
  } else {
    for (const JsonMember& member : map.members) out.of_map.push_back(member.name);
    merge_token_map(std::move(map), out.settings);
  }
  read_role_names(out.settings, out.roles);
  return out;
}

TokenizerName model_tokenizer(const std::string& model, const JsonValue& settings) {
  const std::string folder = is_folder(model) ? model : folder_of(model);
  return tokenizer_name(settings, read_optional(folder, "config.json"));
}

std::optional<TokenId> config_mask(const JsonValue& config) {
  const JsonValue* id = config.find("mask_token_id");
  const bool number = id != nullptr && id->is(JsonKind::kNumber);
  return number ? parse_number<TokenId>(id->text) : std::nullopt;
}

std::optional<TokenId> model_mask(const std::string& model) {
  const std::string folder = is_folder(model) ? model : folder_of(model);
  return config_mask(read_optional(folder, "config.json"));
}

TokenizerName config_tokenizer(const std::string& text, const JsonValue& settings) {
  return tokenizer_name(settings, parse_json_file(text, "config.json"));
}

void choose_rules(FolderConfig& config, VocabularyFile file, const std::string& path) {
  const TokenizerName& name = config.tokenizer;
  const auto refuse = [&](std::string_view message, std::string_view other = "") {
    const std::string way =
        file == VocabularyFile::kSpiece ? fmt::format(" (or {} spm)", field("flavor")) : "";
    throw InputError(
        path, fmt::format("{} {}, expected tokenizer.json{}{}", name.named, message, other, way));
  };
  config.architecture.clear();
  if (file == VocabularyFile::kSpiece && name.spiece_by_rules) {
    config.architecture = "sentencepiece";
  } else if (const JsonValue* own = own_code(config.settings); own != nullptr) {
    throw InputError(path, fmt::format("tokenizer_config.json names code of its own ('{}'), "
                                       "expected tokenizer.json",
                                       escape(own->text)));
  } else if (name.named.empty()) {
    return;
  } else if (name.architecture.empty()) {
    refuse("has no reader here, and the rules of another class give other ids");
  } else if (name.file == file) {
    config.architecture = name.architecture;
  } else if (!name.is_type) {
    refuse("does not read this file");
  } else if (name.is_beside && !name.is_general) {
    refuse("does not read this file",
           file == VocabularyFile::kVocabTxt
               ? " or a tokenizer_class that reads it in tokenizer_config.json (BertTokenizer)"
               : " or a tokenizer_class that reads it in tokenizer_config.json");
  }
}

std::string tokenizer_class_of(std::string_view architecture) {
  return std::string(first_tokenizer_class(architecture).name);
}

std::string tokenizer_class_of_model(std::string_view model_type) {
  const TokenizerClass* found = tokenizer_class_of_type(model_type);
  return found == nullptr || is_general_class(found->name) ? "" : std::string(found->name);
}

bool setting(const FolderConfig& config, std::string_view name, bool missing) {
  const JsonValue* value = config.settings.find(name);
  return value != nullptr && value->is(JsonKind::kBool) ? value->text == "true" : missing;
}

// Tokens that the files next to a vocabulary add.

namespace {

/// Whether `json`, a text or an object with a "content", is the token `content`.
bool is_token(const JsonValue& json, std::string_view content) {
  return json.is(JsonKind::kObject) ? json.text_of("content") == content
                                    : json.is(JsonKind::kString) && json.text == content;
}

void sort_by_id(std::vector<AddedToken>& tokens) {
  std::stable_sort(tokens.begin(), tokens.end(),
                   [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
}

/// {"900": {"content": "<new>", "lstrip": false, …}, …}
std::vector<AddedToken> read_decoder(const JsonValue& json, const std::string& path) {
  std::vector<AddedToken> out;
  for (const JsonMember& member : json.members) {
    const TokenId id = parse_number<TokenId>(member.name).value_or(-1);
    if (id < 0) {
      throw InputError(
          path, fmt::format("added_tokens_decoder: '{}', expected an id", escape(member.name)));
    }
    AddedToken token = read_added_token(member.value, path);
    token.id = id;
    out.push_back(std::move(token));
  }
  sort_by_id(out);
  return out;
}

// The order in which transformers adds them.
constexpr std::array<std::string_view, 7> kRoleOrder{"bos", "eos", "unk", "sep",
                                                     "pad", "cls", "mask"};

AddedToken special_token(std::string content) {
  AddedToken token;
  token.content = std::move(content);
  token.special = true;
  return token;
}

/// What the settings say of the token `content` of `role` where they do not only name it.
std::optional<AddedToken> role_flags(const FolderConfig& config, std::string_view role,
                                     std::string_view content) {
  const JsonValue* value = config.settings.find(fmt::format("{}_token", role));
  if (value == nullptr || !value->is(JsonKind::kObject) || value->text_of("content") != content)
    return std::nullopt;
  AddedToken token = read_added_token(*value, config.path);
  token.normalized = bool_field(*value, "normalized", false, config.path);
  token.special = true;
  return token;
}

bool is_role(std::string_view name) {
  return std::ranges::any_of(kRoleOrder, [&](std::string_view role) {
    return name.starts_with(role) && name.substr(role.size()) == "_token";
  });
}

/// The list of special tokens without roles under its present name; nullptr if there is none.
const JsonValue* new_token_list(const JsonValue& settings) {
  const JsonValue* list = settings.find("extra_special_tokens");
  return list != nullptr && !list->is(JsonKind::kObject) ? list : nullptr;
}

/// The same under its old name, too, which is left in special_tokens_map.json alone.
const JsonValue* token_list(const JsonValue& settings) {
  const JsonValue* list = new_token_list(settings);
  return list != nullptr ? list : settings.find("additional_special_tokens");
}

/// Whether the settings name the special token `content`: a role or an item of the list; not only
/// its class.
bool is_named(const JsonValue& settings, std::string_view content) {
  const auto fits = [&](const JsonValue& item) { return is_token(item, content); };
  const JsonValue* list = new_token_list(settings);
  return std::ranges::any_of(settings.members,
                             [&](const JsonMember& member) {
                               return is_role(member.name) && fits(member.value);
                             }) ||
         (list != nullptr && std::ranges::any_of(list->items, fits));
}

/// {"[MASK]": 128000, …}
std::vector<AddedToken> read_ids(const FolderConfig& config) {
  const std::string path = join(folder_of(config.path), "added_tokens.json");
  std::vector<AddedToken> out;
  for (const JsonMember& member : config.added_ids.members) {
    AddedToken token;
    token.content = member.name;
    token.id = id_field(config.added_ids, member.name, path);
    token.normalized = !is_named(config.settings, token.content);
    out.push_back(std::move(token));
  }
  sort_by_id(out);
  return out;
}

void add_text_or_token(const JsonValue& json, const std::string& path,
                       std::vector<AddedToken>& out) {
  if (json.is(JsonKind::kString)) {
    out.push_back(special_token(json.text));
  } else {
    out.push_back(read_added_token(json, path));
    out.back().special = true;
  }
}

/// Special tokens that have a name but no role: those that a model has names of its own for
/// ("image_token").
std::vector<AddedToken> named_tokens(const FolderConfig& config) {
  std::vector<AddedToken> out;
  for (const char* name : {"extra_special_tokens", "model_specific_special_tokens"}) {
    const JsonValue* own = config.settings.find(name);
    if (own == nullptr) continue;
    for (const JsonMember& item : own->members) add_text_or_token(item.value, config.path, out);
  }
  for (const JsonMember& member : config.settings.members) {
    if (member.name.ends_with("_token") && !is_role(member.name) &&
        member.value.is(JsonKind::kString))
      out.push_back(special_token(member.value.text));
  }
  return out;
}

/// Special tokens of the list, which have no names.
std::vector<AddedToken> listed_tokens(const FolderConfig& config) {
  std::vector<AddedToken> out;
  if (const JsonValue* list = token_list(config.settings)) {
    for (const JsonValue& item : list->items) add_text_or_token(item, config.path, out);
  }
  return out;
}

std::unordered_set<std::string> contents_of_roles(const FolderConfig& config) {
  std::unordered_set<std::string> out;
  for (const auto& [role, content] : config.roles) out.insert(content);
  return out;
}

}  // namespace

AddedToken read_added_token(const JsonValue& json, const std::string& path) {
  AddedToken token;
  token.content = get_field(json, "content", JsonKind::kString, path).text;
  token.single_word = bool_field(json, "single_word", false, path);
  token.lstrip = bool_field(json, "lstrip", false, path);
  token.rstrip = bool_field(json, "rstrip", false, path);
  token.special = bool_field(json, "special", false, path);
  token.normalized = bool_field(json, "normalized", !token.special, path);
  return token;
}

void add_folder_tokens(const FolderConfig& config, std::vector<AddedToken>& tokens) {
  std::unordered_map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < tokens.size(); ++i) places.emplace(tokens[i].content, i);
  const auto add = [&](AddedToken token, bool replace) {
    const auto [place, is_new] = places.emplace(token.content, tokens.size());
    if (is_new) {
      tokens.push_back(std::move(token));
    } else if (replace) {
      tokens[place->second] = std::move(token);
    }
  };
  const JsonValue* decoder =
      find_field(config.settings, "added_tokens_decoder", JsonKind::kObject, config.path);
  std::vector<AddedToken> further = named_tokens(config);
  // Whatever the flags of a numbered token say.
  std::unordered_set<std::string> special = contents_of_roles(config);
  for (const AddedToken& token : further) special.insert(token.content);
  for (AddedToken& token : listed_tokens(config)) {
    // A token of the list alone keeps the flag of added_tokens_decoder; added_tokens.json is read
    // before the old name of the list.
    if (decoder == nullptr && new_token_list(config.settings) != nullptr)
      special.insert(token.content);
    further.push_back(std::move(token));
  }
  std::unordered_set<std::string> numbered;  // whose other flags count
  for (const AddedToken& token : tokens) numbered.insert(token.content);
  for (AddedToken& token :
       decoder != nullptr ? read_decoder(*decoder, config.path) : read_ids(config)) {
    token.special = token.special || special.contains(token.content);
    numbered.insert(token.content);
    add(std::move(token), decoder != nullptr);
  }
  for (const std::string_view role : kRoleOrder) {
    for (const auto& [name, content] : config.roles) {
      if (name != role) continue;
      const auto flags = role_flags(config, role, content);
      AddedToken token = flags.value_or(special_token(content));
      if (!flags && role == "mask") {
        token.lstrip = config.mask_takes_space;
        token.normalized = config.mask_is_normalized;
      }
      add(std::move(token), flags.has_value() && !numbered.contains(content));
    }
  }
  for (AddedToken& token : further) {
    const bool replace = !numbered.contains(token.content);
    add(std::move(token), replace);
  }
}

void reset_special_flags(const FolderConfig& config, std::vector<AddedToken>& tokens) {
  std::unordered_set<std::string> special = contents_of_roles(config);
  for (const AddedToken& token : named_tokens(config)) special.insert(token.content);
  for (const AddedToken& token : listed_tokens(config)) special.insert(token.content);
  for (AddedToken& token : tokens) {
    if (special.contains(token.content))
      token = {.id = token.id, .content = token.content, .special = true};
  }
}

// What people should know of the files next to a vocabulary: settings that are not known, and
// Mistral's wrong expression.

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
  std::vector<std::string> unknown, of_map;
  for (const JsonMember& member : config.settings.members) {
    if (is_known_setting(member.name)) continue;
    const bool is_of_map = std::ranges::find(config.of_map, member.name) != config.of_map.end();
    (is_of_map ? of_map : unknown).push_back(fmt::format("'{}'", escape(member.name)));
  }
  for (const auto& [file, names] :
       {std::pair{"tokenizer_config.json", &unknown}, {"special_tokens_map.json", &of_map}}) {
    if (names->empty()) continue;
    parts.warnings.push_back(
        fmt::format("settings of {} that are not known here: {}", file, comma_list(*names)));
  }
}

}  // namespace masque::text
