// Which token has which role.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "text/roles.hpp"

namespace masque::text {

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
