#include "text/step/post_processor.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/escape.hpp"
#include "base/thread/interrupt.hpp"
#include "text/step/json_fields.hpp"
#include "text/unicode/unicode.hpp"

namespace masque::text {

namespace {

/// A special token of BertProcessing and RobertaProcessing.
struct NamedToken {
  std::string token;  ///< its spelling
  TokenId id = 0;     ///< as the file says
};

/// The member `name` of `json`: ["token", id].
NamedToken read_named_token(const JsonValue& json, std::string_view name, const std::string& path) {
  const JsonValue& pair = get_field(json, name, JsonKind::kArray, path);
  const auto id = pair.items.size() == 2 ? pair.items[1].integer() : std::nullopt;
  if (!id || *id > 0x7FFFFFFF || !pair.items[0].is(JsonKind::kString))
    refuse_json(pair, path, "expected [token, id]");
  return {pair.items[0].text, static_cast<TokenId>(*id)};
}

/// BertProcessing: [CLS] A [SEP] B [SEP], with "cls" and "sep" as read_named_token has them.
class BertProcessing final : public PostProcessor {
 public:
  BertProcessing(NamedToken cls, NamedToken sep) : cls_(std::move(cls)), sep_(std::move(sep)) {}

  void process(std::vector<Encoding>& parts, bool special) const override {
    if (!special) return;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      Encoding out;
      if (i == 0) out.push_back(cls_.id, cls_.token, {}, 0, true);
      out.append(parts[i]);
      out.push_back(sep_.id, sep_.token, {}, i == 0 ? 0 : 1, true);
      parts[i] = std::move(out);
    }
  }

  std::size_t added(bool pair) const override { return pair ? 3 : 2; }

 private:
  NamedToken cls_;
  NamedToken sep_;
};

std::unique_ptr<PostProcessor> make_bert_processing(const JsonValue& json,
                                                    const std::string& path) {
  return std::make_unique<BertProcessing>(read_named_token(json, "cls", path),
                                          read_named_token(json, "sep", path));
}

// ByteLevel: with "trim_offsets" (true) offsets without the spaces that are part of tokens; with
// "add_prefix_space" (true) a single first one stays.

constexpr char32_t kByteLevelSpace = 0x120;  ///< Ġ, the byte-level space

bool is_trimmed_space(char32_t c) { return c == kByteLevelSpace || is_white_space(c); }

std::uint32_t leading_spaces(std::string_view token) {
  std::uint32_t count = 0;
  char32_t c = 0;
  for (int size = 0; (size = decode_utf8(token, c)) > 0 && is_trimmed_space(c);) {
    token.remove_prefix(static_cast<std::size_t>(size));
    ++count;
  }
  return count;
}

std::uint32_t trailing_spaces(std::string_view token) {
  std::uint32_t count = 0;
  while (!token.empty() && is_trimmed_space(last_code_point(token))) {
    token = token.substr(0, last_begin(token));
    ++count;
  }
  return count;
}

/// Moves the offsets of `encoding` past the spaces that byte-level tokens begin and end with; with
/// `add_prefix_space` not past a single one at the begin of the text.
void trim_byte_level_offsets(Encoding& encoding, bool add_prefix_space) {
  SparseLooks looks;
  for (std::size_t i = 0; i < encoding.size(); ++i) {
    looks.step();
    std::uint32_t leading = leading_spaces(encoding.tokens[i]);
    const std::uint32_t trailing = trailing_spaces(encoding.tokens[i]);
    Span& offset = encoding.offsets[i];
    if (leading > 0) {
      // A single first space is the one that was put there.
      if ((i == 0 || offset.begin == 0) && add_prefix_space && leading == 1) leading = 0;
      offset.begin = std::min(offset.begin + leading, offset.end);
    }
    if (trailing > 0 && offset.end >= trailing)
      offset.end = std::max(offset.end - trailing, offset.begin);
  }
}

class ByteLevelProcessing final : public PostProcessor {
 public:
  ByteLevelProcessing(bool trim, bool prefix) : trim_(trim), prefix_(prefix) {}

  void process(std::vector<Encoding>& parts, bool /*special*/) const override {
    if (!trim_) return;
    for (Encoding& part : parts) trim_byte_level_offsets(part, prefix_);
  }

  std::size_t added(bool /*pair*/) const override { return 0; }

 private:
  bool trim_;
  bool prefix_;
};

std::unique_ptr<PostProcessor> make_byte_level_processing(const JsonValue& json,
                                                          const std::string& path) {
  return std::make_unique<ByteLevelProcessing>(bool_field(json, "trim_offsets", true, path),
                                               bool_field(json, "add_prefix_space", true, path));
}

/// RobertaProcessing: <s> A </s></s> B </s>, all of type 0, with "cls" and "sep" as
/// read_named_token has them; "trim_offsets" (true) and "add_prefix_space" (true) as of ByteLevel.
class RobertaProcessing final : public PostProcessor {
 public:
  RobertaProcessing(NamedToken cls, NamedToken sep, bool trim, bool prefix)
      : cls_(std::move(cls)), sep_(std::move(sep)), trim_(trim), prefix_(prefix) {}

  void process(std::vector<Encoding>& parts, bool special) const override {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      Encoding& part = parts[i];
      if (trim_) trim_byte_level_offsets(part, prefix_);
      part.type_ids.assign(part.size(), 0);
      if (!special) continue;
      Encoding out;
      const NamedToken& before = i == 0 ? cls_ : sep_;
      out.push_back(before.id, before.token, {}, 0, true);
      out.append(part);
      out.push_back(sep_.id, sep_.token, {}, 0, true);
      part = std::move(out);
    }
  }

  std::size_t added(bool pair) const override { return pair ? 4 : 2; }

 private:
  NamedToken cls_;
  NamedToken sep_;
  bool trim_;
  bool prefix_;
};

std::unique_ptr<PostProcessor> make_roberta_processing(const JsonValue& json,
                                                       const std::string& path) {
  return std::make_unique<RobertaProcessing>(read_named_token(json, "cls", path),
                                             read_named_token(json, "sep", path),
                                             bool_field(json, "trim_offsets", true, path),
                                             bool_field(json, "add_prefix_space", true, path));
}

// TemplateProcessing: special tokens and texts in the order that "single" and "pair" give; the
// tokens are in "special_tokens". Also refused: a token or a text that is not there.

/// A text (0 or 1) or, with `text` −1, special tokens.
struct TemplatePiece {
  int text = -1;
  std::uint32_t type_id = 0;
  std::vector<NamedToken> tokens;
};

using Template = std::vector<TemplatePiece>;

std::size_t count_special(const Template& pieces) {
  std::size_t count = 0;
  for (const TemplatePiece& piece : pieces) count += piece.tokens.size();
  return count;
}

class TemplateProcessing final : public PostProcessor {
 public:
  TemplateProcessing(Template single, Template pair)
      : single_(std::move(single)), pair_(std::move(pair)) {}

  void process(std::vector<Encoding>& parts, bool special) const override {
    const Template& pieces = parts.size() == 2 ? pair_ : single_;
    std::vector<Encoding> out;
    for (const TemplatePiece& piece : pieces) {
      if (piece.text >= 0) {
        out.push_back(parts.at(static_cast<std::size_t>(piece.text)));
        out.back().type_ids.assign(out.back().size(), piece.type_id);
      } else if (special) {
        out.emplace_back();
        for (const NamedToken& token : piece.tokens)
          out.back().push_back(token.id, token.token, {}, piece.type_id, true);
      }
    }
    // A template without a text, of special tokens that were not asked for.
    if (out.empty()) out.emplace_back();
    parts = std::move(out);
  }

  std::size_t added(bool pair) const override { return count_special(pair ? pair_ : single_); }

 private:
  Template single_;
  Template pair_;
};

std::vector<NamedToken> read_special(const JsonValue& special, const JsonValue& name,
                                     const std::string& path) {
  const JsonValue* entry = special.find(name.text);
  if (entry == nullptr) {
    refuse_json(name, path,
                fmt::format("special token '{}' is not in 'special_tokens'", escape(name.text)));
  }
  const auto& ids = get_field(*entry, "ids", JsonKind::kArray, path).items;
  const auto& tokens = get_field(*entry, "tokens", JsonKind::kArray, path).items;
  if (ids.size() != tokens.size())
    refuse_json(*entry, path, "'ids' and 'tokens' differ in length, expected the same");
  std::vector<NamedToken> out;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto id = ids[i].integer();
    if (!id || *id > 0x7FFFFFFF || !tokens[i].is(JsonKind::kString))
      refuse_json(ids[i], path, "no id and token, expected them");
    out.push_back({tokens[i].text, static_cast<TokenId>(*id)});
  }
  return out;
}

Template read_template(const JsonValue& json, const char* name, int texts, const JsonValue& special,
                       const std::string& path) {
  Template out;
  for (const JsonValue& item : get_field(json, name, JsonKind::kArray, path).items) {
    TemplatePiece piece;
    if (const JsonValue* text = find_field(item, "Sequence", JsonKind::kObject, path)) {
      const JsonValue& id = get_field(*text, "id", JsonKind::kString, path);
      piece.text = id.text == "A" ? 0 : id.text == "B" ? 1 : 2;
      if (piece.text >= texts)
        refuse_json(id, path,
                    fmt::format("text '{}' in '{}', expected {}", escape(id.text), name,
                                texts == 1 ? "A" : "A or B"));
      piece.type_id = static_cast<std::uint32_t>(id_field(*text, "type_id", path));
    } else {
      const JsonValue& token = get_field(item, "SpecialToken", JsonKind::kObject, path);
      piece.tokens = read_special(special, get_field(token, "id", JsonKind::kString, path), path);
      piece.type_id = static_cast<std::uint32_t>(id_field(token, "type_id", path));
    }
    out.push_back(std::move(piece));
  }
  return out;
}

std::unique_ptr<PostProcessor> make_template_processing(const JsonValue& json,
                                                        const std::string& path) {
  const JsonValue& special = get_field(json, "special_tokens", JsonKind::kObject, path);
  Template single = read_template(json, "single", 1, special, path);
  Template pair = read_template(json, "pair", 2, special, path);
  return std::make_unique<TemplateProcessing>(std::move(single), std::move(pair));
}

/// Sequence: one of "processors" after another.
class SequenceProcessing final : public PostProcessor {
 public:
  explicit SequenceProcessing(std::vector<std::unique_ptr<PostProcessor>> steps)
      : steps_(std::move(steps)) {}

  void process(std::vector<Encoding>& parts, bool special) const override {
    for (const auto& step : steps_) step->process(parts, special);
  }

  std::size_t added(bool pair) const override {
    std::size_t count = 0;
    for (const auto& step : steps_) count += step->added(pair);
    return count;
  }

 private:
  std::vector<std::unique_ptr<PostProcessor>> steps_;
};

std::unique_ptr<PostProcessor> make_sequence_processing(const JsonValue& json,
                                                        const std::string& path) {
  std::vector<std::unique_ptr<PostProcessor>> steps;
  for (const JsonValue& item : get_field(json, "processors", JsonKind::kArray, path).items)
    steps.push_back(make_post_processor(item, path));
  return std::make_unique<SequenceProcessing>(std::move(steps));
}

/// A type of post-processor.
struct PostProcessorKind {
  std::string_view name;  ///< its "type" in tokenizer.json
  /// Makes it of its object in the file `path`.
  std::unique_ptr<PostProcessor> (*make)(const JsonValue& json, const std::string& path);
};

// By name.
constexpr PostProcessorKind kPostProcessors[] = {
    {"BertProcessing", make_bert_processing},         {"ByteLevel", make_byte_level_processing},
    {"RobertaProcessing", make_roberta_processing},   {"Sequence", make_sequence_processing},
    {"TemplateProcessing", make_template_processing},
};

}  // namespace

std::unique_ptr<PostProcessor> make_post_processor(const JsonValue& json, const std::string& path) {
  return kind_of_type<PostProcessorKind>(kPostProcessors, json, "post-processor", path)
      .make(json, path);
}

}  // namespace masque::text
