// vocab.json and merges.txt as the classes of transformers 5 read them.
#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/json/json_writer.hpp"
#include "text/model/vocabulary_file.hpp"
#include "text/open/convert.hpp"
#include "text/open/tokenizer_files.hpp"

namespace masque::text {

namespace {

constexpr std::uint64_t kMostBytes = 1U << 30;

constexpr std::array kGpt2Roles{ClassRole{"bos", "<|endoftext|>"},
                                ClassRole{"eos", "<|endoftext|>"},
                                ClassRole{"unk", "<|endoftext|>"}};
constexpr std::array kNeoxRoles{ClassRole{"bos", "<|endoftext|>"},
                                ClassRole{"eos", "<|endoftext|>"},
                                ClassRole{"unk", "<|endoftext|>"}, ClassRole{"pad", "<|padding|>"}};
constexpr std::array kQwenRoles{ClassRole{"eos", "<|endoftext|>"},
                                ClassRole{"unk", "<|endoftext|>"},
                                ClassRole{"pad", "<|endoftext|>"}};
constexpr std::array kClipRoles{
    ClassRole{"bos", "<|startoftext|>"}, ClassRole{"eos", "<|endoftext|>"},
    ClassRole{"unk", "<|endoftext|>"}, ClassRole{"pad", "<|endoftext|>"}};
constexpr std::string_view kEndOfWord = "</w>";

/// The template of Whisper: its prefix without a language, then the text.
std::string whisper_json(const TokenFinder& find, const FolderConfig& config) {
  for (const char* name : {"language", "task"}) {
    const JsonValue* value = config.settings.find(name);
    if (value != nullptr && !value->is(JsonKind::kNull)) {
      throw InputError(config.path,
                       fmt::format("{}: not supported, expected null or tokenizer.json", name));
    }
  }
  const std::string unknown = role_of(config, "unk").value_or("<|endoftext|>");
  const auto name = [&](std::string_view token) {
    return find(token) ? std::string(token) : unknown;
  };
  std::vector<std::string> single{name("<|startoftranscript|>") + ":0"};
  if (!setting(config, "predict_timestamps", false))
    single.push_back(name("<|notimestamps|>") + ":0");
  single.emplace_back("$A:0");
  std::vector<std::string> pair = single;
  const std::string eos = role_of(config, "eos").value_or("<|endoftext|>");
  single.push_back(eos + ":0");
  pair.insert(pair.end(), {"$B:1", eos + ":1"});
  return template_json(find, single, pair);
}

std::string deberta_json(const TokenFinder& find, const FolderConfig& config) {
  const std::string cls = role_of(config, "cls").value_or("") + ":0";
  const std::string sep = role_of(config, "sep").value_or("") + ":0";
  return template_json(find, {cls, "$A:0", sep}, {cls, "$A:0", sep, sep, "$B:0", sep});
}

}  // namespace

TokenizerText byte_level_steps(const std::string& kind, const FolderConfig& config,
                               const TokenFinder& find) {
  const bool prefix = setting(config, "add_prefix_space", false);
  const std::string bytes = byte_level_json(prefix, setting(config, "trim_offsets", true));
  TokenizerText text{.pre_tokenizer = bytes, .decoder = byte_level_json(true, true)};
  if (kind == "whisper") {
    text.post_processor = whisper_json(find, config);
  } else if (kind == "roberta") {
    text.post_processor =
        roberta_json(find, role_of(config, "cls").value_or(""), role_of(config, "sep").value_or(""),
                     setting(config, "trim_offsets", true), prefix);
  } else if (kind == "deberta") {
    text.post_processor = deberta_json(find, config);
  } else if (kind == "clip") {
    text.normalizer =
        R"({"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Replace","pattern":{"Regex":"\\s+"},"content":" "},{"type":"Lowercase"}]})";
    text.pre_tokenizer = cut_bytes_json(
        R"(<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+)",
        "Removed", true, byte_level_json(false, true));
    text.post_processor =
        roberta_json(find, role_of(config, "bos").value_or("<|startoftext|>"),
                     role_of(config, "eos").value_or("<|endoftext|>"), false, false);
    text.decoder = clip_decoder();
  } else {
    if (kind != "gpt2") text.normalizer = R"({"type":"NFC"})";
    text.post_processor = bos_eos_json(find, config, false, false);
    if (kind == "qwen2") {
      text.pre_tokenizer = cut_bytes_json(
          R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
          "Isolated", false, byte_level_json(prefix, true, false));
    }
  }
  return text;
}

std::string clip_decoder() {
  return R"({"type":"Sequence","decoders":[{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true},{"type":"Replace","pattern":{"String":"</w>"},"content":" "},{"type":"Strip","content":" ","start":1,"stop":1}]})";
}

std::span<const ClassRole> byte_level_roles(std::string_view kind) {
  if (kind == "roberta") return kFairseqRoles;
  if (kind == "deberta") return kDebertaRoles;
  if (kind == "gpt_neox") return kNeoxRoles;
  if (kind == "qwen2") return kQwenRoles;
  if (kind == "clip") return kClipRoles;
  return kGpt2Roles;
}

std::string byte_level_processor(const std::string& kind, const TokenFinder& find,
                                 const FolderConfig& config) {
  return byte_level_steps(kind, config, find).post_processor;
}

TokenizerParts read_byte_level(const std::string& vocab_path, const std::string& merges_path,
                               const FolderConfig& folder) {
  auto vocab = read_vocab_json(InputFile::open(vocab_path).read_all(kMostBytes), vocab_path);
  const auto merges =
      read_merges_txt(InputFile::open(merges_path).read_all(kMostBytes), merges_path);
  std::string kind = folder.architecture;
  BpeOptions options;
  if (kind == "clip") {
    options.end_of_word_suffix = kEndOfWord;
    options.unk_token = role_of(with_class_roles(folder, kClipRoles), "unk");
  }
  const auto model = make_bpe(std::move(vocab), merges, options, vocab_path);
  const bool is_guess = kind.empty();
  if (is_guess) kind = model->find("<s>") && model->find("</s>") ? "roberta" : "gpt2";
  // A class adds the tokens that its vocabulary lacks; a folder that names none means those it has.
  const FolderConfig config =
      is_guess ? with_class_roles(folder, known_roles(byte_level_roles(kind), *model))
               : with_class_roles(folder, byte_level_roles(kind));
  std::vector<AddedToken> tokens;
  add_folder_tokens(config, tokens);
  if (kind == "qwen2") reset_special_flags(config, tokens);
  const std::string json =
      tokenizer_json(byte_level_steps(kind, config, finder_with(model, tokens)));
  TokenizerParts parts = assemble(parse_json_file(json, vocab_path), model, "BPE", vocab_path);
  parts.added = std::move(tokens);
  if (kind == "clip") {  // the ends of words are marked, not their beginnings
    parts.word_mark = WordMark::kEveryToken;
    parts.word_prefix.clear();
    parts.word_suffix = kEndOfWord;
  }
  parts.kind = kind;
  parts.format = "vocab.json and merges.txt";
  parts.summary.emplace_back("read_as", kind);
  return parts;
}

}  // namespace masque::text
