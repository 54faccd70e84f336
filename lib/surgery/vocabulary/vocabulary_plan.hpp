// Plans a new vocabulary from a user's request: which tokens are added, removed and moved.
#pragma once

#include <string>
#include <vector>

#include "surgery/rows/vocabulary_change.hpp"

namespace masque::surgery {

/// Tokens or ids as a user lists them.
struct TokenList {
  /// How entries are read.
  enum class As {
    kAuto,    ///< ids if every entry is a whole number, else tokens
    kIds,     ///< ids
    kTokens,  ///< tokens
  };
  /// What happens to tokens that are to go, but that merges of a byte-pair model pass through on
  /// the way to a remaining token.
  enum class Passed {
    kKeep,    ///< they stay
    kRemove,  ///< they go, and so do the tokens that are made from them
  };
  std::vector<std::string> entries;  ///< in the user's order
  As as = As::kAuto;                 ///< how the entries are read
  Passed passed = Passed::kKeep;     ///< of plan_remove() and plan_keep()
};

/// The vocabulary of `state` as it is: every row from itself.
VocabularyChange all_rows(const VocabularyState& state);

/// The rows of `list`, in its order. Throws UsageError for an entry that is no id where ids are
/// meant, InputError for an unknown token, an id beyond the table of `state`, and what is listed
/// twice.
std::vector<std::uint64_t> rows_of(const VocabularyState& state, const TokenList& list);

/// Throws InputError naming the checkpoint of `state` for a `token` that tokenizer files cannot
/// hold: empty, not UTF-8, or with a line end.
void check_token(const VocabularyState& state, const std::string& token);

/// The vocabulary of `state` with the new `tokens`, in order: in the rows after the last token that
/// the table has already, then in new ones; then rows without token up to a multiple of `multiple`.
/// Throws InputError without a tokenizer, for a token twice, for one that check_token() refuses,
/// and for one that is there (unless `skip_existing`); UsageError if `multiple` is 0; InputError
/// for more than 2^24 rows.
VocabularyChange plan_add(const VocabularyState& state, const std::vector<std::string>& tokens,
                          bool skip_existing, std::uint64_t multiple);

/// The vocabulary of `state` with `count` new rows without token after the last one, and more up to
/// a multiple of `multiple`. Throws InputError for a folder with a tokenizer and for more than 2^24
/// rows, UsageError if `multiple` is 0.
VocabularyChange plan_append(const VocabularyState& state, std::uint64_t count,
                             std::uint64_t multiple);

/// The vocabulary of `state` without the rows of `list`; later ids move down. With merges,
/// list.passed decides about tokens on the way to others; notes say how many stay or go. A note
/// says which characters the removed bytes of a byte-level vocabulary, or of byte fallback, take
/// with them. Throws as rows_of(), and InputError for a special token (with a role as [PAD], or
/// called special by a file), if merges need all listed tokens, or if no row is left.
VocabularyChange plan_remove(const VocabularyState& state, const TokenList& list);

/// The rows of `list` alone, in the order of their ids in `state`, those of special tokens and
/// those that the configurations name (ids_named_by_configs()). So that a text whose tokens are all
/// listed keeps them, the following stay as well, with notes: the tokens of single bytes; by
/// list.passed those that merges pass through on the way to a listed one; the piece with the lowest
/// score of a Unigram model. Throws as rows_of(), and InputError if no row is left.
VocabularyChange plan_keep(const VocabularyState& state, const TokenList& list);

/// The rows of `state` in the order of `list`, which names every row with a token (every row,
/// without a tokenizer); rows without token that it does not name follow. Throws as rows_of(), and
/// InputError if it leaves a row out.
VocabularyChange plan_permute(const VocabularyState& state, const TokenList& list);

/// The vocabulary of `state` with `rows` rows, rounded up to a multiple of `multiple`: cut at the
/// end, or with new rows without token. Throws InputError for 0 rows, for more than 2^24 and if
/// rows with a token would be removed, UsageError if `multiple` is 0.
VocabularyChange plan_resize(const VocabularyState& state, std::uint64_t rows,
                             std::uint64_t multiple);

}  // namespace masque::surgery
