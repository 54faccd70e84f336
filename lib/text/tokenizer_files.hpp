// Tokenizers from the files that models come with.
#pragma once

#include <string>
#include <string_view>

#include "text/find_roles.hpp"
#include "text/spiece_model.hpp"
#include "text/tokenizer.hpp"

namespace masque::text {

/// tokenizer.json.
TokenizerParts read_tokenizer_json(std::string_view text, const std::string& path);

/// Everything but the model: "normalizer", "pre_tokenizer", "post_processor", "decoder",
/// "added_tokens" of `json`, which `path` is the file of. `model_type` as in tokenizer.json.
TokenizerParts assemble(const JsonValue& json, std::shared_ptr<const TokenModel> model,
                        std::string_view model_type, const std::string& path);

/// Sets the fast encoder that these steps allow.
void choose_fast_path(const JsonValue& json, TokenizerParts& parts);

/// What config.json, tokenizer_config.json and special_tokens_map.json of a folder say, as far as
/// they are there; all of them may be wrong.
struct FolderConfig {
  std::string architecture;  ///< "bert", "roberta", …: of tokenizer_class, else of model_type
  std::string path;          ///< of tokenizer_config.json
  JsonValue settings;        ///< tokenizer_config.json; null if there is none
  JsonValue added_ids;       ///< added_tokens.json; null if there is none
  RoleNames roles;
};
FolderConfig read_folder_config(const std::string& folder);
/// FolderConfig::architecture by the config.json of a model alone: of its folder, or of a file's.
std::string model_architecture(const std::string& model);
/// The same by the text of a config.json.
std::string config_architecture(const std::string& text);
/// What transformers calls the tokenizer of an architecture: "RobertaTokenizer".
std::string tokenizer_class_of(std::string_view architecture);
/// What transformers reads the tokenizer of a model with, by the model_type of its config.json;
/// empty if that is not known.
std::string tokenizer_class_of_model(std::string_view model_type);
/// A flag of tokenizer_config.json.
bool setting(const FolderConfig& config, std::string_view name, bool missing);

/// An entry of added_tokens or added_tokens_decoder, but for its id. Throws InputError for what is
/// none.
AddedToken read_added_token(const JsonValue& json, const std::string& path);

/// Adds to `tokens` what the folder adds: added_tokens_decoder of tokenizer_config.json, else
/// added_tokens.json, and the tokens with a role. Flags of a token that is there already are
/// replaced by those of added_tokens_decoder. Throws InputError for what is no entry.
void add_folder_tokens(const FolderConfig& config, std::vector<AddedToken>& tokens);

/// vocab.txt, as transformers converts it for BERT and MPNet, or by Google's or bert4keras' rules.
TokenizerParts read_wordpiece(std::string_view text, const std::string& path,
                              const FolderConfig& config, Flavor flavor);
/// vocab.json and merges.txt: GPT-2, RoBERTa, DeBERTa.
TokenizerParts read_byte_level(const std::string& vocab_path, const std::string& merges_path,
                               const FolderConfig& config);
/// spiece.model: ALBERT, XLNet, T5, DeBERTa-v2 and v3 as transformers converts them, or by
/// SentencePiece's own rules.
TokenizerParts read_spiece(std::string_view bytes, const std::string& path,
                           const FolderConfig& config, Flavor flavor);

/// The same by the rules of libsentencepiece, without a template.
TokenizerParts read_spiece_by_its_rules(const SpieceModel& spiece, const std::string& path);

/// "chars:FILE", "whitespace:FILE", "bytes"; nothing for another name.
std::optional<TokenizerParts> make_builtin(const std::string& name);

}  // namespace masque::text
