// The "model" object of tokenizer.json.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/split.hpp"
#include "text/model/model.hpp"
#include "text/model/vocabulary_file.hpp"

namespace masque::text {

namespace {

/// The fields of a model, requested one by one; what nobody requested is not supported.
class Fields {
 public:
  Fields(const JsonValue& json, std::string type, const std::string& path,
         std::vector<std::string_view> known)
      : json_(json), type_(std::move(type)), path_(path) {
    known.insert(known.end(), {"type", "vocab"});
    for (const JsonMember& member : json.members) {
      if (std::find(known.begin(), known.end(), member.name) == known.end()) {
        fail(fmt::format("the field \"{}\" is not supported", escape(member.name)));
      }
    }
  }

  const std::string& path() const { return path_; }
  [[noreturn]] void fail(const std::string& message) const {
    throw InputError(path_, fmt::format("model {}: {}", type_, message));
  }

  /// The field, or nullptr if it is missing or null.
  const JsonValue* find(std::string_view name) const {
    const JsonValue* value = json_.find(name);
    return value == nullptr || value->is(JsonKind::kNull) ? nullptr : value;
  }
  const JsonValue& need(std::string_view name) const {
    const JsonValue* value = find(name);
    if (value == nullptr) fail(fmt::format("the field \"{}\" is missing", name));
    return *value;
  }
  std::optional<std::string> text(std::string_view name) const {
    const JsonValue* value = find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is(JsonKind::kString)) fail(fmt::format("\"{}\" is not a string", name));
    return value->text;
  }
  std::string needed_text(std::string_view name) const {
    need(name);
    return *text(name);
  }
  bool flag(std::string_view name) const {
    const JsonValue* value = find(name);
    if (value == nullptr) return false;
    if (!value->is(JsonKind::kBool)) fail(fmt::format("\"{}\" is not true or false", name));
    return value->text == "true";
  }
  std::vector<VocabEntry> vocab() const { return vocab_of(need("vocab"), path_); }

 private:
  const JsonValue& json_;
  std::string type_;
  const std::string& path_;
};

std::shared_ptr<const TokenModel> wordpiece(const JsonValue& json, const std::string& path) {
  const Fields fields(json, "WordPiece", path,
                      {"unk_token", "continuing_subword_prefix", "max_input_chars_per_word"});
  WordPieceOptions options;
  options.unk_token = fields.needed_text("unk_token");
  options.continuing_subword_prefix = fields.needed_text("continuing_subword_prefix");
  const auto limit = fields.need("max_input_chars_per_word").integer();
  if (!limit) fields.fail("\"max_input_chars_per_word\" is not a number ≥ 0");
  options.max_input_chars_per_word = *limit;
  return make_wordpiece(fields.vocab(), options);
}

std::vector<std::pair<std::string, std::string>> merges_of(const Fields& fields) {
  const JsonValue& json = fields.need("merges");
  if (!json.is(JsonKind::kArray)) fields.fail("\"merges\" is not a list");
  std::vector<std::pair<std::string, std::string>> out;
  out.reserve(json.items.size());
  for (std::size_t i = 0; i < json.items.size(); ++i) {
    const JsonValue& item = json.items[i];
    if (item.is(JsonKind::kString)) {
      // Older files: as the lines of merges.txt.
      if (item.text.starts_with("#version")) continue;
      if (const auto tokens = split_in_two(item.text, ' ')) {
        out.emplace_back(*tokens);
        continue;
      }
    } else if (item.items.size() == 2 && item.items[0].is(JsonKind::kString) &&
               item.items[1].is(JsonKind::kString)) {
      out.emplace_back(item.items[0].text, item.items[1].text);
      continue;
    }
    fields.fail(fmt::format("merge {} is not two tokens", i));
  }
  return out;
}

std::shared_ptr<const TokenModel> bpe(const JsonValue& json, const std::string& path) {
  const Fields fields(json, "BPE", path,
                      {"merges", "dropout", "unk_token", "continuing_subword_prefix",
                       "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges"});
  if (const JsonValue* dropout = fields.find("dropout")) {
    if (dropout->number() != 0.0) fields.fail("\"dropout\" is not supported: it is random");
  }
  BpeOptions options;
  options.unk_token = fields.text("unk_token");
  options.continuing_subword_prefix = fields.text("continuing_subword_prefix").value_or("");
  options.end_of_word_suffix = fields.text("end_of_word_suffix").value_or("");
  options.fuse_unk = fields.flag("fuse_unk");
  options.byte_fallback = fields.flag("byte_fallback");
  options.ignore_merges = fields.flag("ignore_merges");
  return make_bpe(fields.vocab(), merges_of(fields), options, path);
}

std::shared_ptr<const TokenModel> unigram(const JsonValue& json, const std::string& path) {
  const Fields fields(json, "Unigram", path, {"unk_id", "byte_fallback"});
  UnigramOptions options;
  if (const JsonValue* unk = fields.find("unk_id")) {
    const auto id = unk->integer();
    if (!id || *id > std::numeric_limits<TokenId>::max()) fields.fail("\"unk_id\" is not an id");
    options.unk_id = static_cast<TokenId>(*id);
  }
  options.byte_fallback = fields.flag("byte_fallback");
  const JsonValue& vocab = fields.need("vocab");
  if (!vocab.is(JsonKind::kArray)) fields.fail("\"vocab\" is not a list");
  std::vector<ScoredPiece> pieces;
  pieces.reserve(vocab.items.size());
  for (const JsonValue& item : vocab.items) {
    if (item.items.size() != 2 || !item.items[0].is(JsonKind::kString) || !item.items[1].number()) {
      fields.fail(fmt::format("piece {} is not a string and a score", pieces.size()));
    }
    pieces.push_back({item.items[0].text, *item.items[1].number(), PieceType::kNormal});
  }
  return make_unigram(pieces, options, path);
}

std::shared_ptr<const TokenModel> word_level(const JsonValue& json, const std::string& path) {
  const Fields fields(json, "WordLevel", path, {"unk_token"});
  return make_word_level(fields.vocab(), fields.needed_text("unk_token"));
}

std::string type_of(const JsonValue& json, const std::string& path) {
  if (const JsonValue* type = json.find("type")) {
    if (!type->is(JsonKind::kString)) throw InputError(path, "model: \"type\" is not a string");
    return type->text;
  }
  const JsonValue* vocab = json.find("vocab");
  if (json.find("merges") != nullptr) return "BPE";
  if (vocab != nullptr && vocab->is(JsonKind::kArray)) return "Unigram";
  return json.find("continuing_subword_prefix") != nullptr ? "WordPiece" : "WordLevel";
}

}  // namespace

std::shared_ptr<const TokenModel> make_model(const JsonValue& json, const std::string& path) {
  if (!json.is(JsonKind::kObject)) throw InputError(path, "model: not an object");
  const std::string type = type_of(json, path);
  if (type == "WordPiece") return wordpiece(json, path);
  if (type == "BPE") return bpe(json, path);
  if (type == "Unigram") return unigram(json, path);
  if (type == "WordLevel") return word_level(json, path);
  throw InputError(path, fmt::format("model: the type \"{}\" is not supported, expected WordPiece, "
                                     "BPE, Unigram or WordLevel",
                                     escape(type)));
}

}  // namespace masque::text
