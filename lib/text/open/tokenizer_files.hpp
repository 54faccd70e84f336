// Tokenizers from the files that models come with.
#pragma once

#include <string>
#include <string_view>

#include "text/open/spiece_model.hpp"
#include "text/open/tokenizer_class.hpp"
#include "text/roles.hpp"
#include "text/tokenizer.hpp"

namespace masque::text {

/// The parts of a tokenizer.json with the contents `text`. Throws InputError naming `path`. Its
/// truncation and padding are not applied.
TokenizerParts read_tokenizer_json(std::string_view text, const std::string& path);
/// The same of `json`, the document in `path`.
TokenizerParts read_tokenizer_json(const JsonValue& json, const std::string& path);

/// Everything but the model: "normalizer", "pre_tokenizer", "post_processor", "decoder",
/// "added_tokens" of `json`, which `path` is the file of. `model` and its `model_type`, as in
/// tokenizer.json, are given. Throws InputError for what is wrong or not supported.
TokenizerParts assemble(const JsonValue& json, std::shared_ptr<const TokenModel> model,
                        std::string_view model_type, const std::string& path);

/// Sets parts.make_fast if the steps of `json`, of which `parts` are made, allow a fast encoder.
void choose_fast_path(const JsonValue& json, TokenizerParts& parts);

/// Which tokenizer the files of a folder name.
struct TokenizerName {
  std::string named;         ///< "tokenizer_class 'X' in FILE", for messages; empty: nothing
  std::string architecture;  ///< whose rules: "bert", "roberta", …; empty: no reader, or nothing
  VocabularyFile file = VocabularyFile::kVocabTxt;  ///< what these rules read
  bool is_type = false;                             ///< only the type of the model is named
  bool is_beside = false;  ///< the files next to the vocabulary name it, not those of a model
  /// A general class is meant (PreTrainedTokenizerFast): of tokenizer.json nothing is changed.
  bool is_general = false;
  bool always_lowers = false;    ///< do_lower_case has no effect: text is in lower case
  bool spiece_by_rules = false;  ///< a SentencePiece file is read by the rules that it states
};

/// What config.json, tokenizer_config.json and special_tokens_map.json of a folder say, as far as
/// they are there; all of them may be wrong.
struct FolderConfig {
  TokenizerName tokenizer;   ///< which tokenizer the files name
  std::string architecture;  ///< whose rules count, by choose_rules(); empty: those of the file
  std::string path;          ///< of tokenizer_config.json
  /// tokenizer_config.json with special_tokens_map.json where that counts; null if there is none
  JsonValue settings;
  std::vector<std::string> of_map;  ///< names of settings that special_tokens_map.json has set
  JsonValue model;                  ///< config.json; null if there is none
  JsonValue added_ids;              ///< added_tokens.json; null if there is none
  std::optional<TokenId> mask;      ///< mask_token_id of the model's config.json
  RoleNames roles;                  ///< of the settings
  RoleNames old_roles;              ///< of a special_tokens_map.json that is an old copy
  bool mask_takes_space = false;    ///< the class's mask token takes the space before it
  bool mask_is_normalized = false;  ///< and is found in normalised text
};
/// Reads these files in `folder`. Throws InputError for one that is no JSON.
FolderConfig read_folder_config(const std::string& folder);
/// FolderConfig::tokenizer by the config.json of `model` and `settings`, a tokenizer_config.json:
/// that in this folder, or next to this file.
TokenizerName model_tokenizer(const std::string& model, const JsonValue& settings);
/// mask_token_id of the config.json of `model`, as in model_tokenizer(); nothing if it has none.
std::optional<TokenId> model_mask(const std::string& model);
/// The same of `config`, a config.json.
std::optional<TokenId> config_mask(const JsonValue& config);
/// model_tokenizer() by `text`, that of a config.json, and `settings`. Throws InputError if it is
/// no JSON.
TokenizerName config_tokenizer(const std::string& text, const JsonValue& settings);
/// Sets config.architecture for the vocabulary `path`, which is a `file`. Throws InputError naming
/// `path` if `config` names a tokenizer that is not read here, or a class that reads other files;
/// a model's type alone only where it is named next to the vocabulary.
void choose_rules(FolderConfig& config, VocabularyFile file, const std::string& path);
/// What transformers calls the tokenizer of `architecture`, a known one: "RobertaTokenizer".
std::string tokenizer_class_of(std::string_view architecture);
/// What transformers reads the tokenizer of a model with, by the `model_type` of its config.json;
/// empty if that is not known.
std::string tokenizer_class_of_model(std::string_view model_type);
/// The flag `name` of the tokenizer_config.json of `config`; `missing` if it is not there or no
/// flag.
bool setting(const FolderConfig& config, std::string_view name, bool missing);

/// Adds warnings to `parts` with the settings of `config` that are neither read nor known to change
/// no id, one for each file that has some.
void note_unknown_settings(const FolderConfig& config, TokenizerParts& parts);

/// Changes `parts`, read from the tokenizer.json `json`, as the class that `folder` names and the
/// files next to it do in transformers: their special tokens, and the template of the class. Throws
/// InputError for settings and ids that contradict `json`.
void apply_class(const JsonValue& json, const FolderConfig& folder, TokenizerParts& parts);

/// Adds transformers' warning of Mistral's wrong expression to `parts`, which were read from the
/// tokenizer.json `json` next to the files of `config`. Throws InputError if tokenizer_config.json
/// has that corrected ("fix_mistral_regex").
void note_tokenizer_json(const JsonValue& json, const FolderConfig& config, TokenizerParts& parts);

/// The entry `json` of added_tokens or added_tokens_decoder, but for its id. Throws InputError
/// naming `path` for what is none.
AddedToken read_added_token(const JsonValue& json, const std::string& path);

/// Adds to `tokens` what the folder of `config` adds: added_tokens_decoder of
/// tokenizer_config.json, else added_tokens.json, and the tokens with a role. Flags of a token that
/// is there already are replaced by those of added_tokens_decoder. Throws InputError for what is no
/// entry.
void add_folder_tokens(const FolderConfig& config, std::vector<AddedToken>& tokens);
/// Gives those of `tokens` that are special tokens of `config` the flags of plain ones: Qwen2's
/// constructor adds them by what they are called. Throws as add_folder_tokens.
void reset_special_flags(const FolderConfig& config, std::vector<AddedToken>& tokens);

/// The parts of a vocab.txt with the contents `text`, as transformers converts it for BERT and
/// MPNet with `config`, or by Google's or bert4keras' rules (`flavor`). Throws InputError naming
/// `path`.
TokenizerParts read_wordpiece(std::string_view text, const std::string& path,
                              const FolderConfig& config, Flavor flavor);
/// The parts of ESM's vocab.txt `text` in the folder of `config`: each line is a token wherever it
/// is in a text. Throws InputError naming `path`.
TokenizerParts read_esm(std::string_view text, const std::string& path, const FolderConfig& config);
/// The parts of a tekken.json, Mistral's, with the contents `text`, and of what the folder of
/// `config` adds. Throws InputError naming `path`.
TokenizerParts read_tekken(std::string_view text, const std::string& path,
                           const FolderConfig& config);
/// Whether `text` begins as a file of tiktoken's: a token in base64 and its rank.
bool is_tiktoken(std::string_view text);
/// The parts of such a file with the contents `text`: by its name, an encoding that tiktoken
/// publishes
/// ("cl100k_base.tiktoken"), else by the pattern of Llama 3 with what the folder of `config` adds,
/// as transformers reads it. Throws InputError naming `path`.
TokenizerParts read_tiktoken(std::string_view text, const std::string& path,
                             const FolderConfig& config);
/// Whether `model` has Chinese words of several characters, which RoFormer's tokenizer finds with
/// jieba's dictionary.
bool has_chinese_words(const TokenModel& model);
/// The parts of the vocab.json at `vocab_path` and the merges.txt at `merges_path`, as the
/// classes of transformers 5 for GPT-2, RoBERTa, DeBERTa, GPT-NeoX, Qwen2, CLIP and Whisper read
/// them with `config`. Throws InputError.
TokenizerParts read_byte_level(const std::string& vocab_path, const std::string& merges_path,
                               const FolderConfig& config);
/// The parts of a spiece.model of these `bytes`, as the class that `config` names reads it in
/// transformers 5, or by SentencePiece's own rules (`flavor`). Throws InputError naming `path`.
TokenizerParts read_spiece(std::string_view bytes, const std::string& path,
                           const FolderConfig& config, Flavor flavor);

/// The parts of `spiece`, of the file `path`, as the class FolderConfig::architecture of `config`
/// reads it in transformers 5. Throws InputError naming `path`.
TokenizerParts read_spiece_class(SpieceModel spiece, const std::string& path,
                                 const FolderConfig& config);

/// The parts of `spiece`, of the file `path`, by the rules of libsentencepiece, without a template.
/// Throws InputError naming `path`.
TokenizerParts read_spiece_by_its_rules(const SpieceModel& spiece, const std::string& path);

/// The tokenizer `name`: "chars:FILE", "whitespace:FILE", "bytes", "ids:N,ROLE=ID…"; nothing for
/// another name. Throws InputError if FILE cannot be read or has no line [UNK] or `<unk>`, and for
/// a wrong number or role.
std::optional<TokenizerParts> make_builtin(const std::string& name);

}  // namespace masque::text
