// Vocabularies that differ in how tokens are spelled: new names, and cased forms of lower-case
// tokens.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "surgery/edit/checkpoint_edit.hpp"
#include "surgery/rows/token_names.hpp"
#include "surgery/vocabulary/vocabulary_plan.hpp"

namespace masque::surgery {

/// `text` "OLD=NEW" → the pair. With several `=`, the first one that follows a token of `state`
/// separates the two. Throws UsageError without `=` or with an empty side; InputError if no such
/// side is a token.
std::pair<std::string, std::string> parse_renaming(const VocabularyState& state,
                                                   const std::string& text);

/// All rows of `state` as they are, those of the pairs (old, new) in `names` with another token.
/// Renamings happen at once, so that two tokens may change places. Throws InputError for a lone
/// file (but a GGUF file with names of its own), for an old token that is not there or listed
/// twice, and for a new one that check_token() refuses.
VocabularyChange plan_rename(const VocabularyState& state,
                             const std::vector<std::pair<std::string, std::string>>& names);

/// Which forms plan_case() adds.
struct CaseOptions {
  bool upper = false;          ///< whole words in capitals, too
  std::uint64_t multiple = 1;  ///< further rows without token, up to a multiple; 1 to 2^24
};

/// Adds rows to `state` after its last token, first in rows without a token: for every token that
/// begins a word its form with a capital, for every token of one letter (with or without "##") its
/// capital, and with `upper` of `options` for all tokens the form in capitals; each as a copy of
/// the lower-case row. A form is omitted if it exists already, or if lower-casing it does not give
/// the token. Tokens with a role, [unusedN] and what begins with "[" or "<" have no forms. Throws
/// InputError if there are none, or if `multiple` is not in its range.
VocabularyChange plan_case(const VocabularyState& state, const CaseOptions& options);

/// Makes a WordPiece tokenizer that lower-cases, in the folder of `edit`, keep the case:
/// `lowercase` of tokenizer.json's normalizer, `do_lower_case` of tokenizer_config.json (made if it
/// is missing) and of sentence_bert_config.json. Accents are still removed if they were before:
/// `strip_accents`, which would follow the lower-casing, becomes true. Only for folders. Returns
/// notes for people. Throws InputError for another tokenizer, or one that keeps the case already.
std::vector<std::string> keep_case(CheckpointEdit& edit);

}  // namespace masque::surgery
