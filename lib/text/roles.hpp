// What the special tokens of a tokenizer are for, and which token has which role.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json/json.hpp"
#include "base/types.hpp"

namespace masque::text {

/// Ids of the tokens with a role; nothing where the tokenizer has none.
struct Roles {
  std::optional<TokenId> mask,  ///< hides a token
      cls,                      ///< before a text
      sep,                      ///< after a text
      pad,                      ///< fills a batch
      unk,                      ///< stands for what the vocabulary lacks
      bos,                      ///< begin of a text
      eos;                      ///< end of a text
};

/// The roles, as tokenizer_config.json calls them without "_token".
inline constexpr std::array<std::pair<std::string_view, std::optional<TokenId> Roles::*>, 7>
    kRoleFields{{{"mask", &Roles::mask},
                 {"cls", &Roles::cls},
                 {"sep", &Roles::sep},
                 {"pad", &Roles::pad},
                 {"unk", &Roles::unk},
                 {"bos", &Roles::bos},
                 {"eos", &Roles::eos}}};

/// Roles ("mask") and the tokens that have them, each role once.
using RoleNames = std::vector<std::pair<std::string, std::string>>;

/// Adds what "mask_token" and the others of `json`, which is a tokenizer_config.json or a
/// special_tokens_map.json, say to `names`, unless the role is there already.
void read_role_names(const JsonValue& json, RoleNames& names);

/// The ids of the tokens that `names` gives roles, nothing for those that `find` does not know; for
/// roles without a name, of the usual names. `find` gives the id of a token, if there is one.
Roles find_roles(const std::function<std::optional<TokenId>(std::string_view)>& find,
                 const RoleNames& names);

}  // namespace masque::text
