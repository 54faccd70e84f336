// Tokens that the files next to a vocabulary add.
#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file.hpp"
#include "base/parse_number.hpp"
#include "text/json_fields.hpp"
#include "text/tokenizer_files.hpp"

namespace masque::text {

namespace {

auto find_token(std::vector<AddedToken>& tokens, std::string_view content) {
  return std::find_if(tokens.begin(), tokens.end(),
                      [&](const AddedToken& token) { return token.content == content; });
}

bool has_role(const FolderConfig& config, std::string_view content) {
  return content == "[MASK]" || content == "<mask>" ||
         std::any_of(config.roles.begin(), config.roles.end(),
                     [&](const auto& role) { return role.second == content; });
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

/// {"[MASK]": 128000, …}
std::vector<AddedToken> read_ids(const FolderConfig& config) {
  const std::string path = join(folder_of(config.path), "added_tokens.json");
  std::vector<AddedToken> out;
  for (const JsonMember& member : config.added_ids.members) {
    AddedToken token;
    token.content = member.name;
    token.id = id_field(config.added_ids, member.name, path);
    token.special = has_role(config, token.content);
    token.normalized = !token.special;
    out.push_back(std::move(token));
  }
  sort_by_id(out);
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
  const JsonValue* decoder =
      find_field(config.settings, "added_tokens_decoder", JsonKind::kObject, config.path);
  for (AddedToken& token :
       decoder != nullptr ? read_decoder(*decoder, config.path) : read_ids(config)) {
    const auto known = find_token(tokens, token.content);
    if (known == tokens.end()) {
      tokens.push_back(std::move(token));
    } else if (decoder != nullptr) {
      *known = std::move(token);
    }
  }
  for (const auto& [role, content] : config.roles) {
    if (find_token(tokens, content) != tokens.end()) continue;
    AddedToken token;
    token.content = content;
    token.special = true;
    tokens.push_back(std::move(token));
  }
}

}  // namespace masque::text
