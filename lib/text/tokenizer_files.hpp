// Tokenizers from the files that models come with.
#pragma once

#include <string>
#include <string_view>

#include "text/find_roles.hpp"
#include "text/spiece_model.hpp"
#include "text/tokenizer.hpp"

namespace masque::text {

/// The parts of a tokenizer.json with the contents `text`. Throws InputError naming `path`. Its
/// truncation and padding are not applied.
TokenizerParts read_tokenizer_json(std::string_view text, const std::string& path);

/// Everything but the model: "normalizer", "pre_tokenizer", "post_processor", "decoder",
/// "added_tokens" of `json`, which `path` is the file of. `model` and its `model_type`, as in
/// tokenizer.json, are given. Throws InputError for what is wrong or not supported.
TokenizerParts assemble(const JsonValue& json, std::shared_ptr<const TokenModel> model,
                        std::string_view model_type, const std::string& path);

/// Sets parts.make_fast if the steps of `json`, of which `parts` are made, allow a fast encoder.
void choose_fast_path(const JsonValue& json, TokenizerParts& parts);

/// What config.json, tokenizer_config.json and special_tokens_map.json of a folder say, as far as
/// they are there; all of them may be wrong.
struct FolderConfig {
  std::string architecture;  ///< "bert", "roberta", …: of tokenizer_class, else of model_type
  std::string path;          ///< of tokenizer_config.json
  JsonValue settings;        ///< tokenizer_config.json; null if there is none
  JsonValue added_ids;       ///< added_tokens.json; null if there is none
  RoleNames roles;           ///< of tokenizer_config.json, else of special_tokens_map.json
};
/// Reads these files in `folder`. Throws InputError for one that is no JSON.
FolderConfig read_folder_config(const std::string& folder);
/// FolderConfig::architecture by the config.json of `model` alone: in that folder, or next to that
/// file; empty if there is none.
std::string model_architecture(const std::string& model);
/// The same by `text`, that of a config.json. Throws InputError if it is no JSON.
std::string config_architecture(const std::string& text);
/// What transformers calls the tokenizer of `architecture`, a known one: "RobertaTokenizer".
std::string tokenizer_class_of(std::string_view architecture);
/// What transformers reads the tokenizer of a model with, by the `model_type` of its config.json;
/// empty if that is not known.
std::string tokenizer_class_of_model(std::string_view model_type);
/// The flag `name` of the tokenizer_config.json of `config`; `missing` if it is not there or no
/// flag.
bool setting(const FolderConfig& config, std::string_view name, bool missing);

/// The entry `json` of added_tokens or added_tokens_decoder, but for its id. Throws InputError
/// naming `path` for what is none.
AddedToken read_added_token(const JsonValue& json, const std::string& path);

/// Adds to `tokens` what the folder of `config` adds: added_tokens_decoder of
/// tokenizer_config.json, else added_tokens.json, and the tokens with a role. Flags of a token that
/// is there already are replaced by those of added_tokens_decoder. Throws InputError for what is no
/// entry.
void add_folder_tokens(const FolderConfig& config, std::vector<AddedToken>& tokens);

/// The parts of a vocab.txt with the contents `text`, as transformers converts it for BERT and
/// MPNet with `config`, or by Google's or bert4keras' rules (`flavor`). Throws InputError naming
/// `path`.
TokenizerParts read_wordpiece(std::string_view text, const std::string& path,
                              const FolderConfig& config, Flavor flavor);
/// The parts of the vocab.json at `vocab_path` and the merges.txt at `merges_path`, as transformers
/// converts them for GPT-2, RoBERTa and DeBERTa with `config`. Throws InputError.
TokenizerParts read_byte_level(const std::string& vocab_path, const std::string& merges_path,
                               const FolderConfig& config);
/// The parts of a spiece.model of these `bytes`: ALBERT, XLNet, T5, DeBERTa-v2 and v3 as
/// transformers converts them with `config`, or by SentencePiece's own rules (`flavor`). Throws
/// InputError naming `path`.
TokenizerParts read_spiece(std::string_view bytes, const std::string& path,
                           const FolderConfig& config, Flavor flavor);

/// The parts of `spiece`, of the file `path`, by the rules of libsentencepiece, without a template.
/// Throws InputError naming `path`.
TokenizerParts read_spiece_by_its_rules(const SpieceModel& spiece, const std::string& path);

/// The tokenizer `name`: "chars:FILE", "whitespace:FILE", "bytes"; nothing for another name. Throws
/// InputError if FILE cannot be read or has no line [UNK] or `<unk>`.
std::optional<TokenizerParts> make_builtin(const std::string& name);

}  // namespace masque::text
