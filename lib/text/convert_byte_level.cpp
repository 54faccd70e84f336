// vocab.json and merges.txt as transformers converts them.
#include <fmt/format.h>

#include "base/file.hpp"
#include "text/convert.hpp"
#include "text/tokenizer_files.hpp"
#include "text/vocabulary_file.hpp"

namespace masque::text {

namespace {

constexpr std::uint64_t kMostBytes = 1U << 30;

std::string joined(const std::vector<std::string>& items) {
  std::string out;
  for (const std::string& item : items) {
    if (item.empty()) continue;
    if (!out.empty()) out += ',';
    out += item;
  }
  return out;
}

/// RobertaProcessing, or "null" without its tokens.
std::string roberta_json(const Model& model, bool prefix) {
  const auto cls = model.find("<s>");
  const auto sep = model.find("</s>");
  if (!cls || !sep) return "null";
  return fmt::format(
      R"({{"type":"RobertaProcessing","sep":["</s>",{}],"cls":["<s>",{}],"trim_offsets":true,"add_prefix_space":{}}})",
      *sep, *cls, prefix);
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
  std::string processor =
      R"({"type":"ByteLevel","add_prefix_space":true,"trim_offsets":false,"use_regex":true})";
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
  const std::string json = fmt::format(
      R"({{"normalizer":null,"pre_tokenizer":{{"type":"ByteLevel","add_prefix_space":{},"trim_offsets":true,"use_regex":true}},)"
      R"("post_processor":{},"decoder":{{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true}},"added_tokens":[{}]}})",
      prefix, processor, added);
  TokenizerParts parts = assemble(parse_json_file(json, vocab_path), model, "BPE", vocab_path);
  add_folder_tokens(config, parts.added);
  parts.format = "vocab.json and merges.txt";
  parts.summary.emplace_back("read_as", kind);
  return parts;
}

}  // namespace masque::text
