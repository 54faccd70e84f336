// vocab.txt as the classes of transformers 5 read it, and by Google's and bert4keras' rules.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json_writer.hpp"
#include "text/convert.hpp"
#include "text/original_bert.hpp"
#include "text/tokenizer_files.hpp"
#include "text/unicode/unicode.hpp"
#include "text/unicode/utf8.hpp"
#include "text/vocabulary_file.hpp"

namespace masque::text {

namespace {

constexpr std::array kBertRoles{ClassRole{"unk", "[UNK]"}, ClassRole{"sep", "[SEP]"},
                                ClassRole{"pad", "[PAD]"}, ClassRole{"cls", "[CLS]"},
                                ClassRole{"mask", "[MASK]"}};
constexpr std::array kMpnetRoles{ClassRole{"bos", "<s>"},    ClassRole{"eos", "</s>"},
                                 ClassRole{"unk", "[UNK]"},  ClassRole{"sep", "</s>"},
                                 ClassRole{"pad", "<pad>"},  ClassRole{"cls", "<s>"},
                                 ClassRole{"mask", "<mask>"}};

/// The setting, which may be null.
std::string strip_accents(const FolderConfig& config) {
  const JsonValue* value = config.settings.find("strip_accents");
  return value != nullptr && value->is(JsonKind::kBool) ? value->text : "null";
}

std::string normalizer_json(const FolderConfig& config, bool lower) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("type", "BertNormalizer").member("clean_text", true);
  json.member("handle_chinese_chars", setting(config, "tokenize_chinese_chars", true));
  json.raw_member("strip_accents", strip_accents(config)).member("lowercase", lower).end_object();
  return out;
}

/// RoFormer's tokenizer looks words up that jieba's dictionary finds; without such words in the
/// vocabulary each character is one, as for BERT.
void refuse_chinese_words(const TokenModel& model, const FolderConfig& config,
                          const std::string& path) {
  if (!has_chinese_words(model)) return;
  throw InputError(
      path,
      fmt::format("{} finds Chinese words with jieba's dictionary, which is not built in, and "
                  "the vocabulary has such words: expected one without (or {} google)",
                  config.tokenizer.named, field("flavor")));
}

/// The token with a role: the one that the folder names if the vocabulary has it, else `usual`.
template <class Has>
std::string role_token(const FolderConfig& config, std::string_view role, std::string_view usual,
                       const Has& has) {
  for (const auto& [name, token] : config.roles) {
    const bool fits = token.find(' ') == std::string::npos;  // a template separates by spaces
    if (name == role && fits && has(token)) return token;
  }
  return std::string(usual);
}

/// Google's and bert4keras' special tokens, those that the vocabulary has, and their template.
void add_original_tokens(const TokenModel& model, const FolderConfig& config, std::string& special,
                         std::string& processor) {
  const auto token = [&](std::string_view role, std::string_view usual) {
    return role_token(config, role, usual,
                      [&](const auto& name) { return model.find(name).has_value(); });
  };
  const std::string cls = token("cls", "[CLS]");
  const std::string sep = token("sep", "[SEP]");
  std::vector<std::string> all;
  for (const std::string& name :
       {token("pad", "[PAD]"), token("unk", "[UNK]"), cls, sep, token("mask", "[MASK]")}) {
    const bool known = std::find(all.begin(), all.end(), name) != all.end();  // in another role
    if (!known) all.push_back(name);
  }
  special = added_json(model, {all.begin(), all.end()});
  processor = template_json(model, fmt::format("{}:0 $A:0 {}:0", cls, sep),
                            fmt::format("{0}:0 $A:0 {1}:0 $B:1 {1}:1", cls, sep));
}

/// `config` with the roles of MPNet or BERT. A class adds those that its vocabulary lacks; where
/// only a model says what the vocabulary is for, or nothing does, those count that `model` has.
FolderConfig with_word_roles(const FolderConfig& config, const TokenModel& model, bool mpnet) {
  const std::span<const ClassRole> roles = word_roles(mpnet);
  const bool by_class = !config.architecture.empty() && !config.tokenizer.is_type;
  return by_class ? with_class_roles(config, roles)
                  : with_class_roles(config, known_roles(roles, model));
}

/// Whether MPNet's rules count: a vocabulary of BERT's next to a model of MPNet's has none of its
/// tokens.
bool has_mpnet_rules(const FolderConfig& config, const TokenModel& model) {
  const auto has_both = [&](std::string_view begin, std::string_view end) {
    return model.find(begin) && model.find(end);
  };
  if (config.architecture != "mpnet") return false;
  return !config.tokenizer.is_type || has_both("<s>", "</s>") || !has_both("[CLS]", "[SEP]");
}

}  // namespace

std::span<const ClassRole> word_roles(bool mpnet) {
  if (mpnet) return kMpnetRoles;
  return kBertRoles;
}

std::string words_processor(const TokenFinder& find, const FolderConfig& config, bool mpnet) {
  if (!mpnet) return cls_sep_json(find, config);
  return roberta_json(find, role_of(config, "cls").value_or(""),
                      role_of(config, "sep").value_or(""), true, false);
}

bool has_chinese_words(const TokenModel& model) {
  for (TokenId id = 0; static_cast<std::size_t>(id) < model.size(); ++id) {
    const std::string_view token = model.token(id);
    std::size_t characters = 0;
    bool chinese = false;
    for (std::size_t i = 0; i < token.size(); ++characters)
      chinese = is(next_char(token, i), kChinese) || chinese;
    if (chinese && characters > 1 && !token.starts_with("##")) return true;
  }
  return false;
}

TokenizerParts read_wordpiece(std::string_view text, const std::string& path,
                              const FolderConfig& folder, Flavor flavor) {
  const bool original = flavor == Flavor::kGoogle || flavor == Flavor::kBert4Keras;
  if (folder.architecture == "esm") return read_esm(text, path, folder);
  VocabLines lines = read_vocab_txt(text, path);
  WordPieceOptions options;
  if (original) options.max_input_chars_per_word = 200;
  options.overlong_may_be_token = flavor == Flavor::kBert4Keras;
  const std::size_t duplicates = lines.duplicates.size();
  if (flavor == Flavor::kBert4Keras && duplicates > 0) {
    throw InputError(
        path,
        fmt::format(
            "line {} is a duplicate: bert4keras' ids after it are not supported (use {} google)",
            lines.duplicates.front() + 1, field("flavor")));
  }
  options.unk_token = role_token(folder, "unk", options.unk_token, [&](const auto& token) {
    return std::find(lines.tokens.begin(), lines.tokens.end(), token) != lines.tokens.end();
  });
  const auto model = make_wordpiece(std::move(lines.tokens), options);
  if (!original && folder.architecture == "roformer") refuse_chinese_words(*model, folder, path);
  const bool mpnet = !original && has_mpnet_rules(folder, *model);
  FolderConfig config = original ? folder : with_word_roles(folder, *model, mpnet);
  if (mpnet) set_mask_flags(config, "mpnet");
  const bool lower = setting(config, "do_lower_case", true);
  std::string special;
  std::string processor;
  std::vector<AddedToken> tokens;
  if (original) {
    add_original_tokens(*model, config, special, processor);
  } else {
    add_folder_tokens(config, tokens);
    processor = words_processor(finder_with(model, tokens), config, mpnet);
  }
  const std::string json =
      tokenizer_json({.normalizer = original ? "null" : normalizer_json(config, lower),
                      .pre_tokenizer = R"({"type":"BertPreTokenizer"})",
                      .post_processor = processor,
                      .decoder = R"({"type":"WordPiece","prefix":"##","cleanup":true})",
                      .added_tokens = special});
  TokenizerParts parts = assemble(parse_json_file(json, path), model, "WordPiece", path);
  if (!original) parts.added = std::move(tokens);
  if (flavor == Flavor::kGoogle) parts.steps.normalizer = make_google_bert(lower);
  if (flavor == Flavor::kBert4Keras) parts.steps.normalizer = make_bert4keras(lower);
  if (original) {
    parts.summary.emplace_back("read_as", flavor == Flavor::kGoogle ? "Google's" : "bert4keras'");
    parts.make_fast = [](const Steps& steps, bool) { return make_plain_encoder(steps); };
  }
  if (!original) parts.kind = mpnet ? "mpnet" : "bert";
  parts.format = "vocab.txt";
  parts.summary.emplace_back("lower_case", lower ? "yes" : "no");
  if (duplicates > 0) {
    parts.warnings.push_back(
        fmt::format("{} lines of the vocabulary are duplicates; the last one counts", duplicates));
  }
  return parts;
}

}  // namespace masque::text
