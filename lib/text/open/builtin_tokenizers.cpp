// Tokenizers that need no rules: characters, bytes, words between white space.
#include <array>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/string/utf8.hpp"
#include "text/model/vocabulary_file.hpp"
#include "text/open/convert.hpp"
#include "text/open/tokenizer_files.hpp"

namespace masque::text {

namespace {

constexpr std::uint64_t kMaxVocabulary = 1U << 30;

/// Joins tokens, and repairs characters that were cut.
class BytesDecoder final : public Decoder {
 public:
  void decode(std::vector<std::string>& tokens) const override {
    std::string bytes;
    for (const std::string& token : tokens) bytes += token;
    std::string text;
    append_replacing_invalid(bytes, text);
    tokens.assign(1, text);
  }
};

TokenizerParts make_bytes_tokenizer() {
  TokenizerParts parts;
  parts.path = "bytes";
  parts.format = "built in";
  parts.steps.model = make_bytes();
  parts.decoder = std::make_shared<BytesDecoder>();
  parts.summary = {{"model", "bytes"}};
  parts.make_fast = [](const Steps& steps, bool) { return make_plain_encoder(steps); };
  return parts;
}

constexpr std::array<std::string_view, 15> kSpecials{
    "[PAD]", "[UNK]", "[CLS]", "[SEP]",  "[MASK]", "<pad>",         "<unk>", "<s>",
    "</s>",  "<cls>", "<sep>", "<mask>", "<eos>",  "<|endoftext|>", "<bos>"};

TokenizerParts read_lines(const std::string& path, bool characters) {
  VocabLines lines = read_vocab_txt(read_text(path, kMaxVocabulary), path);
  auto vocab = numbered(std::move(lines.tokens));
  std::string unknown;
  for (const auto& entry : vocab)
    if (entry.first == "[UNK]" || entry.first == "<unk>") unknown = entry.first;
  if (unknown.empty()) throw InputError(path, "no [UNK] or <unk>, expected a line with one");
  const auto model = characters ? make_characters(std::move(vocab), unknown)
                                : make_word_level(std::move(vocab), unknown);
  TokenizerText parts_text;
  (characters ? parts_text.decoder : parts_text.pre_tokenizer) =
      characters ? R"({"type":"Fuse"})" : R"({"type":"WhitespaceSplit"})";
  parts_text.post_processor =
      template_json(*model, "[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1");
  parts_text.added_tokens = added_json(*model, {kSpecials.begin(), kSpecials.end()});
  const std::string json = tokenizer_json(parts_text);
  TokenizerParts parts =
      assemble(parse_json_file(json, path), model, characters ? "characters" : "WordLevel", path);
  parts.format = kLinesFormat;
  if (!parts.make_fast)
    parts.make_fast = [](const Steps& steps, bool) { return make_plain_encoder(steps); };
  return parts;
}

}  // namespace

std::optional<TokenizerParts> make_builtin(const std::string& name) {
  if (name == "bytes") return make_bytes_tokenizer();
  if (name.starts_with("chars:")) return read_lines(name.substr(6), true);
  if (name.starts_with("whitespace:")) return read_lines(name.substr(11), false);
  return std::nullopt;
}

}  // namespace masque::text
