#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file.hpp"
#include "text/google_folder.hpp"
#include "text/tokenizer_class.hpp"
#include "text/tokenizer_files.hpp"

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

/// The class of its own that "auto_map" of tokenizer_config.json names; nullptr if none.
const JsonValue* own_code(const JsonValue& settings) {
  const JsonValue* map = settings.find("auto_map");
  if (map == nullptr) return nullptr;
  const JsonValue* classes = map->is(JsonKind::kObject) ? map->find("AutoTokenizer") : map;
  if (classes == nullptr) return nullptr;
  if (classes->is(JsonKind::kString)) return classes;
  const auto named = std::ranges::find_if(
      classes->items, [](const JsonValue& item) { return item.is(JsonKind::kString); });
  return named == classes->items.end() ? nullptr : &*named;
}

TokenizerName by_class(std::string_view name, const char* file) {
  TokenizerName out;
  out.named = fmt::format("tokenizer_class '{}' in {}", escape(name), file);
  if (name == "BertJapaneseTokenizer") out.named += " (words by MeCab)";
  if (const TokenizerClass* known = find_tokenizer_class(name)) {
    out.architecture = known->architecture;
    out.file = known->file;
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
  out.added_ids = read_optional(folder, "added_tokens.json");
  rename_additional(out.settings);
  // As transformers: with added_tokens_decoder the map is an old copy, else it goes first.
  JsonValue map = read_optional(folder, "special_tokens_map.json");
  if (out.settings.find("added_tokens_decoder") != nullptr) {
    read_role_names(map, out.old_roles);
  } else {
    merge_token_map(std::move(map), out.settings);
  }
  read_role_names(out.settings, out.roles);
  return out;
}

TokenizerName model_tokenizer(const std::string& model, const JsonValue& settings) {
  const std::string folder = is_folder(model) ? model : folder_of(model);
  return tokenizer_name(settings, read_optional(folder, "config.json"));
}

TokenizerName config_tokenizer(const std::string& text, const JsonValue& settings) {
  return tokenizer_name(settings, parse_json_file(text, "config.json"));
}

void choose_rules(FolderConfig& config, VocabularyFile file, const std::string& path) {
  const TokenizerName& name = config.tokenizer;
  const auto refuse = [&](std::string_view message) {
    const std::string way =
        file == VocabularyFile::kSpiece ? fmt::format(" (or {} spm)", field("flavor")) : "";
    throw InputError(path,
                     fmt::format("{} {}, expected tokenizer.json{}", name.named, message, way));
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

}  // namespace masque::text
