// Folders as Google published BERT: bert_config.json, weights and vocab.txt, no word on case but in
// their name.
#pragma once

#include <optional>
#include <string>

namespace masque::text {

/// The tokenizer_config.json that a folder lacks whose name alone says that case counts
/// (cased_L-12_H-768_A-12): it has bert_config.json, neither config.json nor tokenizer_config.json,
/// and its own name, links resolved, has "cased" in any case and no "uncased". A copy of such a
/// folder needs it, under whatever name. Nothing for any other folder. Throws as exists().
std::optional<std::string> tokenizer_config_by_name(const std::string& folder);

}  // namespace masque::text
