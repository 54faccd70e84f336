// vocab.txt as transformers converts it, and by Google's and bert4keras' rules.
#include <fmt/format.h>

#include "base/error.hpp"
#include "text/convert.hpp"
#include "text/original_bert.hpp"
#include "text/tokenizer_files.hpp"
#include "text/vocabulary_file.hpp"

namespace masque::text {

namespace {

/// The setting, which may be null.
std::string strip_accents(const FolderConfig& config) {
  const JsonValue* value = config.settings.find("strip_accents");
  return value != nullptr && value->is(JsonKind::kBool) ? value->text : "null";
}

std::string normalizer_json(const FolderConfig& config, bool lower) {
  return fmt::format(
      R"({{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":{},"strip_accents":{},"lowercase":{}}})",
      setting(config, "tokenize_chinese_chars", true), strip_accents(config), lower);
}

/// The special tokens of BERT or MPNet.
std::string special_json(const Model& model, bool mpnet) {
  if (!mpnet) return added_json(model, {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"});
  const std::string named = added_json(model, {"<s>", "<pad>", "</s>", "[UNK]"});
  const std::string mask = added_json(model, "<mask>", true, true);
  return named + (named.empty() || mask.empty() ? "" : ",") + mask;
}

std::string processor_json(const Model& model, bool mpnet) {
  return mpnet ? template_json(model, "<s>:0 A:0 </s>:0", "<s>:0 A:0 </s>:0 </s>:0 B:0 </s>:0")
               : template_json(model, "[CLS]:0 A:0 [SEP]:0", "[CLS]:0 A:0 [SEP]:0 B:1 [SEP]:1");
}

}  // namespace

TokenizerParts read_wordpiece(std::string_view text, const std::string& path,
                              const FolderConfig& config, Flavor flavor) {
  VocabLines lines = read_vocab_txt(text, path);
  const bool original = flavor == Flavor::kGoogle || flavor == Flavor::kBert4Keras;
  WordPieceOptions options;
  if (original) options.max_input_chars_per_word = 200;
  options.overlong_may_be_token = flavor == Flavor::kBert4Keras;
  const std::size_t duplicates = lines.duplicates.size();
  if (flavor == Flavor::kBert4Keras && duplicates > 0) {
    throw InputError(path, fmt::format("line {} stands in it again: bert4keras' ids behind it are "
                                       "not supported (use --flavor google)",
                                       lines.duplicates.front() + 1));
  }
  const auto model = make_wordpiece(std::move(lines.tokens), options);
  const bool lower = setting(config, "do_lower_case", true);
  const bool mpnet = !original && config.architecture == "mpnet";
  const std::string json = fmt::format(
      R"({{"normalizer":{},"pre_tokenizer":{{"type":"BertPreTokenizer"}},"post_processor":{},)"
      R"("decoder":{{"type":"WordPiece","prefix":"##","cleanup":true}},"added_tokens":[{}]}})",
      original ? "null" : normalizer_json(config, lower), processor_json(*model, mpnet),
      special_json(*model, mpnet));
  TokenizerParts parts = assemble(parse_json_file(json, path), model, "WordPiece", path);
  if (!original) add_folder_tokens(config, parts.added);
  if (flavor == Flavor::kGoogle) parts.steps.normalizer = make_google_bert(lower);
  if (flavor == Flavor::kBert4Keras) parts.steps.normalizer = make_bert4keras(lower);
  if (original) {
    parts.summary.emplace_back("read_as", flavor == Flavor::kGoogle ? "Google's" : "bert4keras'");
    parts.make_fast = [](const Steps& steps, bool) { return make_plain_encoder(steps); };
  }
  parts.format = "vocab.txt";
  parts.summary.emplace_back("lower_case", lower ? "yes" : "no");
  if (duplicates > 0) {
    parts.warnings.push_back(fmt::format(
        "{} lines of the vocabulary stand in it again; the last one counts", duplicates));
  }
  return parts;
}

}  // namespace masque::text
