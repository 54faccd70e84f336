// What the special tokens of a tokenizer are for.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

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

}  // namespace masque::text
