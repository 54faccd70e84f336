// vocab.json and merges.txt as transformers converts them.
#include "base/file.hpp"
#include "base/json_writer.hpp"
#include "text/convert.hpp"
#include "text/tokenizer_files.hpp"
#include "text/vocabulary_file.hpp"

namespace masque::text {

namespace {

constexpr std::uint64_t kMostBytes = 1U << 30;

std::string joined(const std::vector<std::string>& items) {
  std::string out;
  JsonWriter list(out);
  for (const std::string& item : items) list.raw(item);
  return out;
}

/// RobertaProcessing, or "null" without its tokens.
std::string roberta_json(const TokenModel& model, bool prefix) {
  const auto cls = model.find("<s>");
  const auto sep = model.find("</s>");
  if (!cls || !sep) return "null";
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("type", "RobertaProcessing");
  json.key("sep").begin_array().value("</s>").value(*sep).end_array();
  json.key("cls").begin_array().value("<s>").value(*cls).end_array();
  json.member("trim_offsets", true).member("add_prefix_space", prefix).end_object();
  return out;
}

std::string byte_level_json(bool add_prefix_space, bool trim_offsets) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("type", "ByteLevel").member("add_prefix_space", add_prefix_space);
  json.member("trim_offsets", trim_offsets).member("use_regex", true).end_object();
  return out;
}

}  // namespace

TokenizerParts read_byte_level(const std::string& vocab_path, const std::string& merges_path,
                               const FolderConfig& config) {
  auto vocab = read_vocab_json(InputFile::open(vocab_path).read_all(kMostBytes), vocab_path);
  const auto merges =
      read_merges_txt(InputFile::open(merges_path).read_all(kMostBytes), merges_path);
  const auto model = make_bpe(std::move(vocab), merges, {}, merges_path);
  std::string kind = config.architecture;
  if (kind != "roberta" && kind != "deberta" && kind != "gpt2")
    kind = model->find("<s>") && model->find("</s>") ? "roberta" : "gpt2";
  const bool prefix = setting(config, "add_prefix_space", false);
  std::string processor = byte_level_json(true, false);
  std::string added = added_json(*model, {"<|endoftext|>"});
  if (kind == "roberta") {
    processor = roberta_json(*model, prefix);
    added = joined({added_json(*model, {"<s>", "</s>", "<unk>", "<pad>"}),
                    added_json(*model, "<mask>", true, true)});
  } else if (kind == "deberta") {
    processor = template_json(*model, "[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1");
    added = joined({added_json(*model, {"[CLS]", "[SEP]", "[UNK]", "[PAD]"}),
                    added_json(*model, "[MASK]", true, true)});
  }
  const std::string json = tokenizer_json({.pre_tokenizer = byte_level_json(prefix, true),
                                           .post_processor = processor,
                                           .decoder = byte_level_json(true, true),
                                           .added_tokens = added});
  TokenizerParts parts = assemble(parse_json_file(json, vocab_path), model, "BPE", vocab_path);
  add_folder_tokens(config, parts.added);
  parts.kind = kind;
  parts.format = "vocab.json and merges.txt";
  parts.summary.emplace_back("read_as", kind);
  return parts;
}

}  // namespace masque::text
