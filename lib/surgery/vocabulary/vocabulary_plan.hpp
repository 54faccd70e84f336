// Plans a new vocabulary from a user's request: which tokens are added, removed and moved.
#pragma once

#include <string>
#include <vector>

#include "store/checkpoint.hpp"
#include "surgery/rows/token_names.hpp"
#include "surgery/rows/vocabulary_change.hpp"

namespace masque::surgery {

/// What a plan starts from.
struct VocabularyState {
  const store::Checkpoint& checkpoint;
  const TokenNames& names;          ///< may be empty()
  std::uint64_t rows = 0;           ///< of the tables
  std::vector<std::string>& notes;  ///< for people; plans add to them
};

/// Tokens or ids as a user lists them.
struct TokenList {
  enum class As {
    kAuto,    ///< ids if every entry is a whole number, else tokens
    kIds,     ///< ids
    kTokens,  ///< tokens
  };
  std::vector<std::string> entries;
  As as = As::kAuto;
};

/// The vocabulary as it is: every row from itself.
VocabularyChange all_rows(const VocabularyState& state);

/// The rows of a list. Throws InputError for an unknown token, an id beyond the table, and what is
/// listed twice.
std::vector<std::uint64_t> rows_of(const VocabularyState& state, const TokenList& list);

/// Throws InputError for a token that tokenizer files cannot hold: empty, not UTF-8, or with a line
/// end.
void check_token(const VocabularyState& state, const std::string& token);

/// New tokens, in order: in the rows after the last token that the table has already, then in new
/// ones; then rows without token up to a multiple of `multiple`. Throws InputError without a
/// tokenizer, for a token twice, and for one that is there (unless `skip_existing`).
VocabularyChange plan_add(const VocabularyState& state, const std::vector<std::string>& tokens,
                          bool skip_existing, std::uint64_t multiple);

/// `count` new rows after the last one, for a checkpoint without tokenizer.
VocabularyChange plan_append(const VocabularyState& state, std::uint64_t count,
                             std::uint64_t multiple);

/// Without these rows; later ids move down. Throws InputError for a special token (with a role as
/// [PAD], or called special by a file).
VocabularyChange plan_remove(const VocabularyState& state, const TokenList& list);

/// These rows alone, in the order of their ids, and those of special tokens.
VocabularyChange plan_keep(const VocabularyState& state, const TokenList& list);

/// The rows in the order of the list, which names every row with a token (every row, without a
/// tokenizer); rows without token that it does not name follow.
VocabularyChange plan_permute(const VocabularyState& state, const TokenList& list);

/// `rows` rows, rounded up to a multiple. Throws InputError if rows with a token would be removed.
VocabularyChange plan_resize(const VocabularyState& state, std::uint64_t rows,
                             std::uint64_t multiple);

}  // namespace masque::surgery
