#include "text/train/trained_tokenizer.hpp"

#include <algorithm>

#include "base/json.hpp"
#include "base/json_writer.hpp"
#include "text/train/pair_trainer.hpp"
#include "text/unicode/utf8.hpp"

namespace masque::text {

namespace {

constexpr std::string_view kByteLevel =
    R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true})";

std::string normalizer_json(const TrainOptions& options) {
  if (options.kind == TrainedKind::kByteLevelBpe) return "null";
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("type", "BertNormalizer").member("clean_text", true);
  json.member("handle_chinese_chars", true).key("strip_accents").null();
  json.member("lowercase", options.lowercase).end_object();
  return out;
}

std::string words_json(const TrainOptions& options) {
  return options.kind == TrainedKind::kByteLevelBpe ? std::string(kByteLevel)
                                                    : R"({"type":"BertPreTokenizer"})";
}

/// The characters that stand for the 256 bytes.
std::vector<std::string> byte_alphabet() {
  std::vector<std::string> out;
  char32_t next = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool itself = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    std::string character;
    append_utf8(character, itself ? byte : next++);
    out.push_back(std::move(character));
  }
  return out;
}

std::vector<std::string> special_tokens(const TrainOptions& options) {
  std::vector<std::string> out{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
  if (options.kind == TrainedKind::kByteLevelBpe) out = {"<|endoftext|>"};
  for (const std::string& token : options.special)
    if (std::find(out.begin(), out.end(), token) == out.end()) out.push_back(token);
  return out;
}

void add_special(const std::vector<std::string>& special, JsonWriter& json) {
  json.begin_array();
  for (std::size_t i = 0; i < special.size(); ++i) {
    json.begin_object().member("id", i).member("content", special[i]).member("single_word", false);
    json.member("lstrip", false).member("rstrip", false).member("normalized", false);
    json.member("special", true).end_object();
  }
  json.end_array();
}

void add_vocabulary(const std::vector<std::string>& tokens, JsonWriter& json) {
  json.begin_object();
  for (std::size_t i = 0; i < tokens.size(); ++i) json.member(tokens[i], i);
  json.end_object();
}

void add_model(const TrainedVocabulary& vocabulary, TrainedKind kind, JsonWriter& json) {
  json.begin_object();
  if (kind == TrainedKind::kByteLevelBpe) {
    json.raw(
        R"("type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":false,"byte_fallback":false,"ignore_merges":false)");
    add_vocabulary(vocabulary.tokens, json.key("vocab"));
    json.key("merges").begin_array();
    for (const auto& [left, right] : vocabulary.merges)
      json.begin_array().value(left).value(right).end_array();
    json.end_array();
  } else {
    json.raw(
        R"("type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100)");
    add_vocabulary(vocabulary.tokens, json.key("vocab"));
  }
  json.end_object();
}

/// cls and sep are tokens 2 and 3.
constexpr std::string_view kBertTemplate =
    R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"[CLS]","type_id":0}},)"
    R"({"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"[SEP]","type_id":0}}],)"
    R"("pair":[{"SpecialToken":{"id":"[CLS]","type_id":0}},{"Sequence":{"id":"A","type_id":0}},)"
    R"({"SpecialToken":{"id":"[SEP]","type_id":0}},{"Sequence":{"id":"B","type_id":1}},)"
    R"({"SpecialToken":{"id":"[SEP]","type_id":1}}],"special_tokens":)"
    R"({"[CLS]":{"id":"[CLS]","ids":[2],"tokens":["[CLS]"]},)"
    R"("[SEP]":{"id":"[SEP]","ids":[3],"tokens":["[SEP]"]}}})";

std::string tokenizer_json(const TrainedVocabulary& vocabulary, const TrainOptions& options,
                           const std::vector<std::string>& special) {
  const bool bpe = options.kind == TrainedKind::kByteLevelBpe;
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("version", "1.0").key("truncation").null().key("padding").null();
  add_special(special, json.key("added_tokens"));
  json.raw_member("normalizer", normalizer_json(options));
  json.raw_member("pre_tokenizer", words_json(options));
  json.raw_member("post_processor", bpe ? kByteLevel : kBertTemplate);
  json.raw_member("decoder",
                  bpe ? kByteLevel : R"({"type":"WordPiece","prefix":"##","cleanup":true})");
  add_model(vocabulary, options.kind, json.key("model"));
  json.end_object();
  return out + "\n";
}

std::string config_json(const TrainOptions& options) {
  if (options.kind == TrainedKind::kByteLevelBpe) {
    return R"({"tokenizer_class":"GPT2Tokenizer","add_prefix_space":false,"bos_token":"<|endoftext|>","eos_token":"<|endoftext|>","unk_token":"<|endoftext|>"})"
           "\n";
  }
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("tokenizer_class", "BertTokenizer");
  json.member("do_lower_case", options.lowercase);
  json.raw(
      R"("strip_accents":null,"tokenize_chinese_chars":true,"pad_token":"[PAD]","unk_token":"[UNK]","cls_token":"[CLS]","sep_token":"[SEP]","mask_token":"[MASK]")");
  json.end_object();
  return out + "\n";
}

}  // namespace

WordCutter::WordCutter(const TrainOptions& options) {
  const auto parse = [](const std::string& json) { return parse_json_file(json, "tok train"); };
  steps_.normalizer = make_normalizer(parse(normalizer_json(options)), "tok train");
  steps_.pre_tokenizer = make_pre_tokenizer(parse(words_json(options)), "tok train");
}

void WordCutter::cut(std::string_view line,
                     const std::function<void(std::string_view)>& use) const {
  if (line.empty()) return;
  std::vector<AlignedText> words;
  words.push_back(AlignedText::from(line));
  if (steps_.normalizer) steps_.normalizer->apply(words.front());
  if (words.front().text.empty()) return;
  steps_.pre_tokenizer->split(words, true);
  for (const AlignedText& word : words) use(word.text);
}

std::vector<TrainedFile> train_tokenizer(const std::vector<CountedWord>& words,
                                         const TrainOptions& options) {
  const bool bpe = options.kind == TrainedKind::kByteLevelBpe;
  PairTrainerOptions pairs;
  pairs.size = options.size;
  pairs.min_count = options.min_count;
  pairs.special = special_tokens(options);
  pairs.max_alphabet = bpe ? 256 : options.max_alphabet;
  if (bpe) {
    pairs.alphabet = byte_alphabet();
    pairs.max_characters = 1000;
  } else {
    pairs.prefix = "##";
  }
  const TrainedVocabulary vocabulary = train_pairs(words, pairs);
  std::vector<TrainedFile> files;
  if (bpe) {
    std::string vocab;
    JsonWriter json(vocab);
    add_vocabulary(vocabulary.tokens, json);
    files.emplace_back("vocab.json", vocab + "\n");
    std::string merges = "#version: 0.2\n";
    for (const auto& [left, right] : vocabulary.merges)
      merges.append(left).append(" ").append(right).append("\n");
    files.emplace_back("merges.txt", std::move(merges));
  } else {
    std::string lines;
    for (const std::string& token : vocabulary.tokens) lines += token + "\n";
    files.emplace_back("vocab.txt", std::move(lines));
  }
  files.emplace_back("tokenizer_config.json", config_json(options));
  files.emplace_back("tokenizer.json", tokenizer_json(vocabulary, options, pairs.special));
  return files;
}

}  // namespace masque::text
