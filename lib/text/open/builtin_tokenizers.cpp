// Tokenizers that need no rules: characters, bytes, words between white space, ids without texts.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/string/comma_list.hpp"
#include "base/string/parse_number.hpp"
#include "base/string/split.hpp"
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

constexpr std::string_view kIds = "ids:";
constexpr TokenId kMostIds = TokenId{1} << 24;

/// Ids, each named by its number.
class IdsAlone final : public TokenModel {
 public:
  IdsAlone(std::string name, TokenId count) : name_(std::move(name)) {
    for (TokenId id = 0; id < count; ++id) names_.push_back(std::to_string(id));
  }
  void tokenize(std::string_view word, std::vector<Piece>& /*out*/) const override {
    if (word.empty()) return;
    throw InputError(fmt::format("{} reads no text, expected ids, or another tokenizer", name_));
  }
  std::size_t size() const override { return names_.size(); }
  std::optional<TokenId> find(std::string_view token) const override {
    const auto id = parse_number<TokenId>(token);
    if (!id || *id < 0 || *id >= static_cast<TokenId>(size()) || this->token(*id) != token)
      return std::nullopt;
    return id;
  }
  std::string_view token(TokenId id) const override {
    const auto at = static_cast<std::size_t>(id);
    return id >= 0 && at < names_.size() ? std::string_view(names_[at]) : std::string_view();
  }

 private:
  std::string name_;
  std::vector<std::string> names_;
};

TokenizerParts make_ids_tokenizer(const std::string& name) {
  const std::vector<std::string_view> items =
      split(std::string_view(name).substr(kIds.size()), ',');
  const auto count = parse_number<TokenId>(items.front());
  if (!count || *count < 1 || *count > kMostIds)
    throw InputError(escape(name), fmt::format("expected {}N with N from 1 to {}", kIds, kMostIds));
  TokenizerParts parts;
  parts.path = name;
  parts.format = kIdsFormat;
  parts.steps.model = std::make_shared<IdsAlone>(name, *count);
  parts.summary = {{"model", "ids"}};
  parts.make_fast = [](const Steps& steps, bool) { return make_plain_encoder(steps); };
  for (const std::string_view item : std::span(items).subspan(1)) {
    const std::size_t sign = std::min(item.find('='), item.size());
    const std::string_view role = item.substr(0, sign);
    const auto id = parse_number<TokenId>(item.substr(std::min(sign + 1, item.size())));
    const bool known =
        std::ranges::any_of(kRoleFields, [&](const auto& field) { return field.first == role; });
    const bool again = std::ranges::any_of(parts.role_names,
                                           [&](const auto& named) { return named.first == role; });
    if (!known || again || !id || *id < 0 || *id >= *count)
      throw InputError(
          escape(name),
          fmt::format("{}: expected ROLE=ID with {}, each once, and an id below {}", escape(item),
                      comma_list(kRoleFields, [](const auto& field) { return field.first; }),
                      *count));
    parts.role_names.emplace_back(role, std::to_string(*id));
    const bool listed =
        std::ranges::any_of(parts.added, [&](const AddedToken& token) { return token.id == *id; });
    if (!listed)
      parts.added.push_back(
          {.id = *id, .content = std::to_string(*id), .special = true, .found = false});
  }
  return parts;
}

}  // namespace

std::optional<TokenizerParts> make_builtin(const std::string& name) {
  if (name == "bytes") return make_bytes_tokenizer();
  if (name.starts_with(kIds)) return make_ids_tokenizer(name);
  if (name.starts_with("chars:")) return read_lines(name.substr(6), true);
  if (name.starts_with("whitespace:")) return read_lines(name.substr(11), false);
  return std::nullopt;
}

}  // namespace masque::text
