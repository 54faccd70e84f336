// A change of a vocabulary, looked up by old ids and old tokens.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "surgery/rows/token_names.hpp"
#include "surgery/rows/vocabulary_change.hpp"

namespace masque::surgery {

/// Where every token goes. The names and the change must outlive it. For one thread.
class TokenMoves {
 public:
  /// A token after the change.
  struct Token {
    std::uint64_t id = 0;   ///< after the change
    std::string_view text;  ///< into the change, or see follow()
  };

  /// Looks up `change` with the names `before` it. Throws InputError with `path` (the folder) if
  /// the change gives a token twice, or has none for a token with a role.
  TokenMoves(const TokenNames& before, const VocabularyChange& change, const std::string& path);

  /// The new id and text of the token `own` that a file lists with the id `old`; std::nullopt if it
  /// is removed. Views are into the change or `own`. Throws InputError with `file` if that id
  /// changes and the files do not agree about its token; if nothing changes, a note tells it once a
  /// file.
  std::optional<Token> follow(std::uint64_t old, std::string_view own, const std::string& file);

  /// The new id of the id `old`, the first one if its row was copied; nothing if the row is gone.
  std::optional<std::uint64_t> id_after(std::uint64_t old) const;
  /// The old token `token` as it is called now: for places that name tokens without ids. Empty if
  /// it is removed; `token` itself if it is not in the vocabulary.
  std::string_view text_after(std::string_view token) const;
  /// Whether the old token `token` is renamed or removed.
  bool leaves(std::string_view token) const { return leaving_.contains(token); }
  /// Tokens that no row had before, by id.
  const std::vector<Token>& added() const { return added_; }
  /// Tokens whose row had another one, by id.
  const std::vector<Token>& renamed() const { return renamed_; }

  /// Whether the token of the new id `id` is one of added().
  bool is_new(std::uint64_t id) const;
  /// A role that the tokenizer had before the change.
  struct Role {
    std::string_view name;  ///< "mask_token"
    std::uint64_t id = 0;   ///< of its token before the change
  };
  /// The roles that have a token, of pad, unk, cls, sep, mask, bos and eos.
  const std::vector<Role>& roles() const { return roles_; }

  /// The names before the change.
  const TokenNames& before() const { return *before_; }
  /// The change itself.
  const VocabularyChange& change() const { return *change_; }
  /// What follow() has to tell people so far.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  void check_tokens(const std::string& path) const;

  const TokenNames* before_;
  const VocabularyChange* change_;
  std::vector<std::uint64_t> to_;  ///< id before → id, or kNew: gone
  /// Tokens that are gone (empty) or renamed, with what they are called now.
  std::unordered_map<std::string_view, std::string_view> leaving_;
  std::vector<Token> added_;
  std::vector<Role> roles_;
  std::vector<Token> renamed_;
  std::set<std::string> reported_;
  std::vector<std::string> notes_;
};

}  // namespace masque::surgery
