// What the conversions of vocabularies to whole tokenizers share.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/model/model.hpp"
#include "text/open/tokenizer_files.hpp"

namespace masque::text {

/// Items of "added_tokens", special ones, for those of `contents` that `model` has, separated by
/// commas.
std::string added_json(const TokenModel& model, const std::vector<std::string_view>& contents);

/// A TemplateProcessing with the templates `single` of one text and `pair` of two: texts "$A" and
/// "$B" and special tokens (without spaces), each with its type, as in "[CLS]:0 $A:0 [SEP]:0".
/// "null" if `model` lacks one of the tokens.
std::string template_json(const TokenModel& model, std::string_view single, std::string_view pair);

/// The id of a token by its spelling; nothing if there is none.
using TokenFinder = std::function<std::optional<TokenId>(std::string_view)>;

/// As template_json() above, where `single` and `pair` have one piece in each item ("[CLS]:0",
/// which may contain spaces), and `find` gives the ids.
std::string template_json(const TokenFinder& find, const std::vector<std::string>& single,
                          const std::vector<std::string>& pair);

/// RobertaProcessing around a text with the tokens `cls` and `sep`, or "null" if `find` lacks one;
/// `trim_offsets` and `prefix` (add_prefix_space) are its flags.
std::string roberta_json(const TokenFinder& find, std::string_view cls, std::string_view sep,
                         bool trim_offsets, bool prefix);

/// The type "ByteLevel" with the flags `add_prefix_space`, `trim_offsets` and `use_regex`, as a
/// pre-tokenizer, a post-processor or a decoder.
std::string byte_level_json(bool add_prefix_space, bool trim_offsets, bool use_regex = true);

/// The pre-tokenizer that cuts at `regex`, as `behavior` and `invert` say, and then, by the
/// pre-tokenizer `bytes`, into bytes.
std::string cut_bytes_json(std::string_view regex, std::string_view behavior, bool invert,
                           const std::string& bytes);

/// Metaspace with the mark of SentencePiece, as a pre-tokenizer or a decoder; `scheme` is its
/// prepend_scheme, `split` its flag.
std::string metaspace_json(std::string_view scheme, bool split);

/// Replace with a `pattern`, which `kind` says is a "String" or a "Regex", by `content`.
std::string replace_json(std::string_view kind, std::string_view pattern, std::string_view content);

/// A Sequence of `steps`, whose list is called `list`.
std::string sequence_json(std::string_view list, const std::vector<std::string>& steps);

/// The normalizer Precompiled of the bytes `charsmap`, or "null" if there are none.
std::string precompiled_json(std::string_view charsmap);

/// A role of a class and the token that has it unless the folder says otherwise.
struct ClassRole {
  std::string_view role;   ///< "mask"
  std::string_view token;  ///< "<mask>"
};

/// The special tokens of fairseq's models (RoBERTa, XLM-R, mBART).
inline constexpr std::array kFairseqRoles{ClassRole{"bos", "<s>"},    ClassRole{"eos", "</s>"},
                                          ClassRole{"unk", "<unk>"},  ClassRole{"sep", "</s>"},
                                          ClassRole{"pad", "<pad>"},  ClassRole{"cls", "<s>"},
                                          ClassRole{"mask", "<mask>"}};
/// The special tokens of DeBERTa.
inline constexpr std::array kDebertaRoles{ClassRole{"bos", "[CLS]"},  ClassRole{"eos", "[SEP]"},
                                          ClassRole{"unk", "[UNK]"},  ClassRole{"sep", "[SEP]"},
                                          ClassRole{"pad", "[PAD]"},  ClassRole{"cls", "[CLS]"},
                                          ClassRole{"mask", "[MASK]"}};

/// The special tokens that the class `kind` adds where its files name none; empty for others.
std::span<const ClassRole> roles_of_class(std::string_view kind);
/// `config` with those of `defaults` whose role its files neither name nor set to null.
FolderConfig with_class_roles(FolderConfig config, std::span<const ClassRole> defaults);
/// Those of `roles` whose tokens `model` has.
std::vector<ClassRole> known_roles(std::span<const ClassRole> roles, const TokenModel& model);
/// The token that has `role` in `config`; nothing if none.
std::optional<std::string> role_of(const FolderConfig& config, std::string_view role);

/// Sets in `config` how the class `kind` finds its mask token.
void set_mask_flags(FolderConfig& config, std::string_view kind);
/// The template of BERT, ALBERT and DeBERTa-v2 with the roles of `config`; "null" if `find` lacks a
/// token of it.
std::string cls_sep_json(const TokenFinder& find, const FolderConfig& config);

/// The special tokens of BERT's classes, or with `mpnet` of MPNet's.
std::span<const ClassRole> word_roles(bool mpnet);
/// The normalizer of BERT's and MPNet's classes with the settings of `config`.
std::string words_normalizer(const FolderConfig& config);
/// The post-processor of BERT, or with `mpnet` of MPNet, with the roles of `config`; "null" if
/// `find` lacks a token of it.
std::string words_processor(const TokenFinder& find, const FolderConfig& config, bool mpnet);

/// The parts of a tokenizer.json as JSON.
struct TokenizerText {
  std::string normalizer = "null";      ///< an object or null
  std::string pre_tokenizer = "null";   ///< an object or null
  std::string post_processor = "null";  ///< an object or null
  std::string decoder = "null";         ///< an object or null
  std::string added_tokens = {};        ///< items with commas between
};

/// The special tokens of the class `kind`, which reads vocab.json and merges.txt.
std::span<const ClassRole> byte_level_roles(std::string_view kind);
/// The post-processor of such a class, `kind`, with the settings `config`; "null" if `find` lacks a
/// token of it.
std::string byte_level_processor(const std::string& kind, const TokenFinder& find,
                                 const FolderConfig& config);
/// The steps of such a class, `kind`, with `config` and `find` as there.
TokenizerText byte_level_steps(const std::string& kind, const FolderConfig& config,
                               const TokenFinder& find);
/// The decoder of CLIP, as JSON: the ends of words that it marks are spaces, but for the last. The
/// class has it whatever tokenizer.json says.
std::string clip_decoder();

/// The part `member` of a tokenizer.json, `json`, if it is of the type `type`, else the first such
/// step of its Sequence; nullptr if there is none.
const JsonValue* step_of(const JsonValue& json, const char* member, std::string_view type);

/// The template of transformers' "add_bos_token" and "add_eos_token" in `config`, which are `bos`
/// and `eos` where it does not say; ids by `find`.
std::string bos_eos_json(const TokenFinder& find, const FolderConfig& config, bool bos, bool eos);

/// The ids that `tokens` get next to `model`, and those of `model`.
TokenFinder finder_with(const std::shared_ptr<const TokenModel>& model,
                        const std::vector<AddedToken>& tokens);

/// The parts of `text` as a tokenizer.json without its model.
std::string tokenizer_json(const TokenizerText& text);

}  // namespace masque::text
