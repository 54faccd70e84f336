// --kv and --query, of models that run and of masks alone. A header by itself: a tool that knows
// masks only need not link this layer.
#pragma once

#include "cli/command.hpp"
#include "mask/flow.hpp"

namespace masque::commands {

/// Declares --kv and --query of `command`: what later layers read, and what queries start with. The
/// targets, `keys` and `query`, are a mask::KeySource and a mask::QueryStart, or std::optional of
/// these, with the model's as the default.
template <class Keys, class Query>
void add_flow(cli::Command& command, Keys& keys, Query& query) {
  command.choice(
      "--kv", keys, mask::key_source_names(),
      "keys and values of later layers: from the layer before, or from the token embeddings");
  command.choice("--query", query, mask::query_start_names(),
                 "what queries start from: their token, or only their position");
}

}  // namespace masque::commands
