#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/comma_list.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "text/json_fields.hpp"
#include "text/tokenizer_files.hpp"

namespace masque::text {

namespace {

/// Members that hold the steps of a Sequence.
constexpr std::array kStepLists{"normalizers", "pretokenizers", "processors", "decoders"};

/// "Sequence(NFKD, Lowercase)".
std::string describe(const JsonValue& json) {
  const JsonValue* type = json.find("type");
  if (type == nullptr) return "none";
  std::string out = escape(type->text);
  for (const char* list : kStepLists) {
    const JsonValue* steps = json.find(list);
    if (steps == nullptr) continue;
    out += fmt::format("({})", comma_list(steps->items, describe));
  }
  return out;
}

/// Whether a step or one in its Sequence has this type.
bool contains(const JsonValue* json, std::string_view type) {
  if (json == nullptr) return false;
  const JsonValue* own = json->find("type");
  if (own != nullptr && own->text == type) return true;
  return std::any_of(kStepLists.begin(), kStepLists.end(), [&](const char* list) {
    const JsonValue* steps = json->find(list);
    return steps != nullptr && std::any_of(steps->items.begin(), steps->items.end(),
                                           [&](const JsonValue& s) { return contains(&s, type); });
  });
}

std::vector<AddedToken> read_added(const JsonValue& json, const std::string& path) {
  std::vector<AddedToken> out;
  const JsonValue* list = find_field(json, "added_tokens", JsonKind::kArray, path);
  if (list == nullptr) return out;
  for (const JsonValue& item : list->items) {
    AddedToken token = read_added_token(item, path);
    token.id = id_field(item, "id", path);
    out.push_back(std::move(token));
  }
  return out;
}

void set_word_mark(const JsonValue& json, std::string_view model_type, TokenizerParts& parts) {
  const JsonValue* words = json.find("pre_tokenizer");
  if (contains(words, "ByteLevel")) {
    parts.word_mark = WordMark::kSpace;
    parts.word_prefix = "\xC4\xA0";  // Ġ
  } else if (model_type == "WordPiece") {
    parts.word_mark = WordMark::kContinuation;
    parts.word_prefix = "##";
    if (const JsonValue* model = json.find("model"))
      parts.word_prefix =
          text_field(*model, "continuing_subword_prefix", parts.word_prefix, parts.path);
  } else if (contains(words, "Metaspace") || model_type == "Unigram" ||
             (model_type == "BPE" && contains(json.find("normalizer"), "Replace"))) {
    parts.word_mark = WordMark::kSpace;
    parts.word_prefix = "\xE2\x96\x81";  // ▁
  }
}

}  // namespace

TokenizerParts assemble(const JsonValue& json, std::shared_ptr<const TokenModel> model,
                        std::string_view model_type, const std::string& path) {
  TokenizerParts parts;
  parts.path = path;
  parts.steps.model = std::move(model);
  parts.summary.emplace_back("model", model_type);
  const auto find = [&](const char* name) {
    const JsonValue* part = find_field(json, name, JsonKind::kObject, path);
    parts.summary.emplace_back(name, part == nullptr ? "none" : describe(*part));
    return part;
  };
  if (const JsonValue* part = find("normalizer"))
    parts.steps.normalizer = make_normalizer(*part, path);
  if (const JsonValue* part = find("pre_tokenizer"))
    parts.steps.pre_tokenizer = make_pre_tokenizer(*part, path);
  if (const JsonValue* part = find("post_processor"))
    parts.post_processor = make_post_processor(*part, path);
  if (const JsonValue* part = find("decoder")) parts.decoder = make_decoder(*part, path);
  parts.added = read_added(json, path);
  set_word_mark(json, model_type, parts);
  choose_fast_path(json, parts);
  return parts;
}

TokenizerParts read_tokenizer_json(std::string_view text, const std::string& path) {
  return read_tokenizer_json(parse_json_file(text, path), path);
}

TokenizerParts read_tokenizer_json(const JsonValue& json, const std::string& path) {
  if (!json.is(JsonKind::kObject)) refuse_json(json, path, "no object, expected a tokenizer.json");
  const std::string version = text_field(json, "version", "1.0", path);
  if (version != "1.0")
    throw InputError(path, fmt::format("version '{}', expected '1.0'", escape(version)));
  const JsonValue& model = get_field(json, "model", JsonKind::kObject, path);
  std::string type = text_field(model, "type", "", path);
  if (type.empty()) {
    const JsonValue* vocab = model.find("vocab");
    type = model.find("merges") != nullptr                      ? "BPE"
           : vocab != nullptr && vocab->is(JsonKind::kArray)    ? "Unigram"
           : model.find("continuing_subword_prefix") != nullptr ? "WordPiece"
                                                                : "WordLevel";
  }
  TokenizerParts parts = assemble(json, make_model(model, path), type, path);
  parts.format = "tokenizer.json";
  if (type == "Unigram" && find_field(model, "unk_id", JsonKind::kNumber, path) != nullptr)
    parts.unknown_as_text = id_field(model, "unk_id", path);
  for (const char* name : {"truncation", "padding"}) {
    if (find_field(json, name, JsonKind::kObject, path) != nullptr)
      parts.summary.emplace_back(name, "in the file, not applied");
  }
  return parts;
}

}  // namespace masque::text
