// Names of the rows of an embedding table, from the tokenizer files next to a checkpoint. Only ids
// and surfaces: no tokenization.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/types.hpp"
#include "store/checkpoint.hpp"

namespace masque::surgery {

/// The fields of tokenizer_config.json that name a special token.
inline constexpr std::array<std::string_view, 7> kTokenRoles{
    "pad_token", "unk_token", "cls_token", "sep_token", "mask_token", "bos_token", "eos_token"};

/// The vocabulary of a checkpoint's folder. Immutable once loaded.
class TokenNames {
 public:
  /// Reads from `folder` tokenizer.json, or vocab.txt, or vocab.json (these two with the added
  /// tokens of tokenizer_config.json, else of added_tokens.json), and the special tokens from
  /// tokenizer_config.json and special_tokens_map.json. Without any of them the result is empty().
  /// Throws InputError if a file is malformed, larger than 256 MiB, or has an id from 2^21 on.
  static TokenNames load(const std::string& folder);

  /// The vocabulary that the files of `checkpoint` carry themselves (GGUF: tokenizer.ggml.tokens,
  /// those of BERT as vocab.txt spells them; unused ones are none), else that of its folder.
  static TokenNames of(const store::Checkpoint& checkpoint);

  /// The same from the one file at `path`: a tokenizer.json, vocab.json or vocab.txt by any name;
  /// roles by their usual names. Throws InputError for another kind of file.
  static TokenNames read(const std::string& path);

  /// Whether there is no token at all: no tokenizer file was found, or none that is read here.
  bool empty() const { return tokens_.empty(); }
  /// Why there is no token, for messages: "no tokenizer file", or that tokens are not read from
  /// the SentencePiece file that is there.
  std::string why_empty() const;
  /// One past the largest id.
  std::uint64_t size() const { return tokens_.size(); }
  /// The file that the names come from, "vocab.txt"; of GGUF the key tokenizer.ggml.tokens.
  const std::string& source() const { return source_; }

  /// The id of `token`; nothing if it has none. Of several ids of one token the last one read.
  std::optional<std::uint64_t> id(const std::string& token) const;
  /// The token of `id`; empty if none is assigned. Valid as long as this object.
  const std::string& token(std::uint64_t id) const;
  /// True if some token has this `id`.
  bool assigned(std::uint64_t id) const;
  /// Id of the token with the role `role`, one of kTokenRoles: as a file names it, else (but for
  /// bos_token and eos_token) by its usual name. Nothing if the vocabulary has no such token.
  std::optional<std::uint64_t> role(std::string_view role) const;
  /// Whether a file calls the token of this `id` special: an added token with "special": true, one
  /// of the additional special tokens, a control token of GGUF. Says nothing about roles.
  bool special(std::uint64_t id) const;

 private:
  void set(const std::string& token, std::uint64_t id, const std::string& path);
  void read_tokenizer_json(const std::string& path);
  void read_vocab_txt(const std::string& path);
  void read_vocab_json(const std::string& path);
  void read_added(const std::string& folder);
  void read_roles(const std::string& path);
  void guess_roles();
  void read_added_special(const std::string& path);

  std::string source_;
  std::string spiece_;  ///< the SentencePiece file of a folder without one that is read
  std::vector<std::string> tokens_;
  std::vector<bool> assigned_;
  std::unordered_map<std::string, std::uint64_t> ids_;
  std::unordered_map<std::string, std::string> roles_;
  std::unordered_set<std::string> special_;
};

/// True if `token` is "[unused12]", "<unused3>" or the like: rows that no text can select.
bool is_unused_token(std::string_view token);

}  // namespace masque::surgery
