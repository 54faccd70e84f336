// Tokenizers as GGUF files keep them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/model/model.hpp"
#include "text/tokenizer.hpp"

namespace masque::text {

/// What the metadata of a GGUF file say of its tokenizer: the values under "tokenizer.ggml.".
struct GgufVocabulary {
  std::string model;  ///< "llama" (SentencePiece's BPE), "gpt2" (byte-level BPE), "bert" or "t5"
  std::string pre;    ///< how text is cut before BPE: "llama-bpe", "qwen2" …
  std::vector<std::string> tokens;  ///< by id
  std::vector<float> scores;        ///< of each token; SentencePiece's alone
  std::vector<int> types;           ///< of each token, as PieceType; empty: all are normal
  std::vector<std::string> merges;  ///< "left right", of byte-level BPE
  /// Which id has a role: "bos", "eos", "unk", "sep", "pad", "cls", "mask".
  std::vector<std::pair<std::string, TokenId>> roles;
  std::optional<bool> add_bos,                   ///< nothing: what llama.cpp takes for the model
      add_eos;                                   ///< nothing: false
  std::optional<bool> add_space_prefix;          ///< nothing: true
  std::string charsmap;                          ///< bytes of a Charsmap, of "t5"; empty: none
  std::optional<bool> remove_extra_whitespaces;  ///< of "t5"; nothing: false
};

/// The parts of the tokenizer that `vocabulary` describes, with the ids that Hugging Face's have:
/// `path` is its file, for messages. Throws InputError for models and pre-tokenizers that are not
/// read, by name, and for lists that do not fit each other.
TokenizerParts read_gguf_vocabulary(const GgufVocabulary& vocabulary, const std::string& path);

/// What a GGUF file says of `tokenizer`, which was opened from `folder`: the other direction of
/// read_gguf_vocabulary(), by the files of the folder. Every token's text and the lines of
/// read_alike() are encoded both ways and compared. Throws InputError for a tokenizer that no such
/// metadata describe.
GgufVocabulary make_gguf_vocabulary(const Tokenizer& tokenizer, const std::string& folder);

/// The `token` of a file, of kind `type`, as BERT's vocab.txt has it. llama.cpp's converter leaves
/// control tokens, takes "##" off and writes U+2581 before any other one; earlier ones left every
/// "[…]" as it is, which is read so. Tokens of other models than "bert" (`model`, from
/// tokenizer.ggml.model) are the same in both.
std::string plain_gguf_token(std::string_view model, std::string_view token, PieceType type);
/// The reverse of plain_gguf_token(): the token `plain` of kind `type` as a file of `model` has it.
std::string gguf_token(std::string_view model, std::string_view plain, PieceType type);

/// The token that stands for a row `id` without a token.
std::string unused_gguf_token(std::size_t id);

/// A file of a folder.
struct VocabularyText {
  std::string name;     ///< "tokenizer.json"
  std::string content;  ///< text, or SentencePiece's bytes
};
/// The files with which transformers reads the tokenizer of `vocabulary`: tokenizer.json,
/// tokenizer.model or vocab.txt, and tokenizer_config.json. Throws as read_gguf_vocabulary(), of
/// `path`.
std::vector<VocabularyText> files_of_gguf_vocabulary(const GgufVocabulary& vocabulary,
                                                     const std::string& path);

}  // namespace masque::text
