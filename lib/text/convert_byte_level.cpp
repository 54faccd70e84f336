// vocab.json and merges.txt as transformers converts them, and as its classes read them.
#include <array>
#include <span>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json_writer.hpp"
#include "text/convert.hpp"
#include "text/tokenizer_files.hpp"
#include "text/vocabulary_file.hpp"

namespace masque::text {

namespace {

constexpr std::uint64_t kMostBytes = 1U << 30;

std::string joined_items(const std::vector<std::string>& items) {
  std::string out;
  JsonWriter list(out);
  for (const std::string& item : items) list.raw(item);
  return out;
}

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

/// The steps of GPT-NeoX, Qwen2, CLIP and Whisper.
TokenizerText class_steps(const std::string& kind, const FolderConfig& config,
                          const TokenFinder& find) {
  const bool prefix = setting(config, "add_prefix_space", false);
  const std::string bytes = byte_level_json(prefix, setting(config, "trim_offsets", true));
  TokenizerText text{.pre_tokenizer = bytes, .decoder = byte_level_json(true, true)};
  if (kind == "whisper") {
    text.post_processor = whisper_json(find, config);
  } else if (kind == "clip") {
    text.normalizer =
        R"({"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Replace","pattern":{"Regex":"\\s+"},"content":" "},{"type":"Lowercase"}]})";
    text.pre_tokenizer = cut_bytes_json(
        R"(<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+)",
        "Removed", true, byte_level_json(false, true));
    text.post_processor =
        roberta_json(find, role_of(config, "bos").value_or("<|startoftext|>"),
                     role_of(config, "eos").value_or("<|endoftext|>"), false, false);
    text.decoder =
        R"({"type":"Sequence","decoders":[{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true},{"type":"Replace","pattern":{"String":"</w>"},"content":" "},{"type":"Strip","content":" ","start":1,"stop":1}]})";
  } else {
    text.normalizer = R"({"type":"NFC"})";
    text.post_processor = bos_eos_json(find, config, false, false);
    if (kind == "qwen2") {
      text.pre_tokenizer = cut_bytes_json(
          R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
          "Isolated", false, byte_level_json(prefix, true, false));
    }
  }
  return text;
}

/// The parts for GPT-NeoX, Qwen2, CLIP and Whisper.
TokenizerParts read_class(std::vector<VocabEntry> vocab,
                          const std::vector<std::pair<std::string, std::string>>& merges,
                          const std::string& path, const FolderConfig& folder,
                          const std::string& kind) {
  std::span<const ClassRole> roles = kGpt2Roles;
  if (kind == "gpt_neox") roles = kNeoxRoles;
  if (kind == "qwen2") roles = kQwenRoles;
  if (kind == "clip") roles = kClipRoles;
  const FolderConfig config = with_class_roles(folder, roles);
  BpeOptions options;
  if (kind == "clip") {
    options.end_of_word_suffix = kEndOfWord;
    options.unk_token = role_of(config, "unk");
  }
  const auto model = make_bpe(std::move(vocab), merges, options, path);
  std::vector<AddedToken> tokens;
  add_folder_tokens(config, tokens);
  const std::string json = tokenizer_json(class_steps(kind, config, finder_with(model, tokens)));
  TokenizerParts parts = assemble(parse_json_file(json, path), model, "BPE", path);
  parts.added = std::move(tokens);
  if (kind == "clip") {  // the ends of words are marked, not their beginnings
    parts.word_mark = WordMark::kEveryToken;
    parts.word_prefix.clear();
  }
  return parts;
}

TokenizerParts read_converted(std::vector<VocabEntry> vocab,
                              const std::vector<std::pair<std::string, std::string>>& merges,
                              const std::string& path, const FolderConfig& config,
                              std::string& kind) {
  const auto model = make_bpe(std::move(vocab), merges, {}, path);
  if (kind.empty()) kind = model->find("<s>") && model->find("</s>") ? "roberta" : "gpt2";
  const auto find = [&](std::string_view token) { return model->find(token); };
  const bool prefix = setting(config, "add_prefix_space", false);
  std::string processor = byte_level_json(true, false);
  std::string added = added_json(*model, {"<|endoftext|>"});
  if (kind == "roberta") {
    processor = roberta_json(find, "<s>", "</s>", true, prefix);
    added = joined_items({added_json(*model, {"<s>", "</s>", "<unk>", "<pad>"}),
                          added_json(*model, "<mask>", true, true)});
  } else if (kind == "deberta") {
    processor = template_json(*model, "[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1");
    added = joined_items({added_json(*model, {"[CLS]", "[SEP]", "[UNK]", "[PAD]"}),
                          added_json(*model, "[MASK]", true, true)});
  } else if (setting(config, "add_bos_token", false) || setting(config, "add_eos_token", false)) {
    std::vector<AddedToken> tokens;
    const FolderConfig with_roles = with_class_roles(config, kGpt2Roles);
    add_folder_tokens(with_roles, tokens);
    processor = bos_eos_json(finder_with(model, tokens), with_roles, false, false);
  }
  const std::string json = tokenizer_json({.pre_tokenizer = byte_level_json(prefix, true),
                                           .post_processor = processor,
                                           .decoder = byte_level_json(true, true),
                                           .added_tokens = added});
  TokenizerParts parts = assemble(parse_json_file(json, path), model, "BPE", path);
  add_folder_tokens(config, parts.added);
  return parts;
}

}  // namespace

TokenizerParts read_byte_level(const std::string& vocab_path, const std::string& merges_path,
                               const FolderConfig& config) {
  auto vocab = read_vocab_json(InputFile::open(vocab_path).read_all(kMostBytes), vocab_path);
  const auto merges =
      read_merges_txt(InputFile::open(merges_path).read_all(kMostBytes), merges_path);
  std::string kind = config.architecture;
  const bool converted = kind.empty() || kind == "gpt2" || kind == "roberta" || kind == "deberta";
  TokenizerParts parts = converted
                             ? read_converted(std::move(vocab), merges, vocab_path, config, kind)
                             : read_class(std::move(vocab), merges, vocab_path, config, kind);
  parts.kind = kind;
  parts.format = "vocab.json and merges.txt";
  parts.summary.emplace_back("read_as", kind);
  return parts;
}

}  // namespace masque::text
