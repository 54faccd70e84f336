// vocab.txt as the classes of transformers 5 read it, and by Google's and bert4keras' rules.
#include <algorithm>
#include <array>
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json/json_writer.hpp"
#include "text/model/vocabulary_file.hpp"
#include "text/open/convert.hpp"
#include "text/open/tokenizer_files.hpp"
#include "text/step/bert.hpp"
#include "text/step/normalizer.hpp"
#include "text/step/rewriter.hpp"
#include "text/unicode/unicode.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::text {

namespace {

// BERT's normalisation before Hugging Face: Google's, and bert4keras'.

constexpr char32_t kSigma = 0x3A3;
constexpr char32_t kFinalSigma = 0x3C2;

bool is_private(char32_t c) { return (c >= 0xE000 && c <= 0xF8FF) || c >= 0xF0000; }

bool is_chinese(char32_t c) { return is(c, kChinese) || (c >= 0x2B820 && c <= 0x2B91F); }

/// Finds the sigmas that are the last letter of a word that has others, as Python's str.lower does.
class FinalSigma {
 public:
  explicit FinalSigma(std::string_view text) : text_(text) {}

  /// Takes the next character, which ends at `end`; whether it is a final sigma.
  bool take(char32_t c, std::size_t end) {
    const bool final = c == kSigma && cased_before_ && !cased_after(end);
    if (!is_case_ignorable(c)) cased_before_ = is_cased(c);
    return final;
  }

 private:
  /// Each call looks at what is between one sigma and the next, which is cased: linear in all.
  bool cased_after(std::size_t i) const {
    while (i < text_.size()) {
      const char32_t c = next_char(text_, i);
      if (!is_case_ignorable(c)) return is_cased(c);
    }
    return false;
  }

  std::string_view text_;
  bool cased_before_ = false;
};

void final_sigmas(AlignedText& text) {
  if (text.text.find("\xCE\xA3") == std::string::npos) return;
  Rewriter rewriter(text);
  FinalSigma sigmas(text.text);
  for (std::size_t i = 0; i < text.text.size();) {
    const char32_t c = next_char(text.text, i);
    rewriter.put(sigmas.take(c, i) ? kFinalSigma : c, 0);
  }
  rewriter.finish();
}

void clean_and_space(AlignedText& text) {
  Rewriter rewriter(text);
  for (std::size_t i = 0; i < text.text.size();) {
    const char32_t c = next_char(text.text, i);
    if (is(c, kBertRemoved) && !is_private(c)) {
      rewriter.drop(1);
    } else if (is(c, kBertSpace)) {
      rewriter.put(U' ', 0);
    } else if (is_chinese(c)) {
      rewriter.put(U' ', 0);
      rewriter.put(c, 1);
      rewriter.put(U' ', 1);
    } else {
      rewriter.put(c, 0);
    }
  }
  rewriter.finish();
}

void lower_and_strip(AlignedText& text) {
  final_sigmas(text);
  lower(text);
  bert_normalize(text, {.clean_text = false,
                        .handle_chinese_chars = false,
                        .strip_accents = true,
                        .lowercase = false});
}

class OriginalBert final : public Normalizer {
 public:
  OriginalBert(bool lowercase, bool clean_first)
      : lowercase_(lowercase), clean_first_(clean_first) {}

  void apply(AlignedText& text) const override {
    if (clean_first_) clean_and_space(text);
    if (lowercase_) lower_and_strip(text);
    if (!clean_first_) clean_and_space(text);
  }

 private:
  bool lowercase_;
  bool clean_first_;
};

/// Google's BasicTokenizer: as BertNormalizer, but characters for private use stay, U+2B820 to
/// U+2B91F are Chinese, and a sigma at the end of a word is ς in lower case. Without `lowercase`
/// accents stay, too.
std::shared_ptr<const Normalizer> make_google_bert(bool lowercase) {
  return std::make_shared<OriginalBert>(lowercase, true);
}

/// bert4keras: with `lowercase` lower case and no accents first, then as Google's.
std::shared_ptr<const Normalizer> make_bert4keras(bool lowercase) {
  return std::make_shared<OriginalBert>(lowercase, false);
}

// Special tokens, settings and parts of the tokenizer.

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

/// Whether the class of `config` puts text in lower case.
bool lowers_words(const FolderConfig& config) {
  const bool always = config.tokenizer.always_lowers && !config.architecture.empty();
  return always || setting(config, "do_lower_case", true);
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

std::string words_normalizer(const FolderConfig& config) {
  return normalizer_json(config, lowers_words(config));
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
  const bool stated = setting(config, "do_lower_case", true);
  const bool lower = original ? stated : lowers_words(config);
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
      tokenizer_json({.normalizer = original ? "null" : words_normalizer(config),
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
  if (lower != stated) {
    parts.warnings.push_back(
        fmt::format("do_lower_case false has no effect: {} lowers the case of every text, as in "
                    "transformers",
                    config.tokenizer.named));
  }
  if (duplicates > 0) {
    parts.warnings.push_back(
        fmt::format("{} lines of the vocabulary are duplicates; the last one counts", duplicates));
  }
  return parts;
}

}  // namespace masque::text
