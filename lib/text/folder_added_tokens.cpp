// Tokens that the files next to a vocabulary add.
#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file.hpp"
#include "base/parse_number.hpp"
#include "text/json_fields.hpp"
#include "text/tokenizer_files.hpp"

namespace masque::text {

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

}  // namespace masque::text
