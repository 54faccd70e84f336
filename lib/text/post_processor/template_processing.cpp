// TemplateProcessing: special tokens and texts in the order that "single" and "pair" give; the
// tokens are in "special_tokens". Also refused: a token or a text that is not there.
#include <fmt/format.h>

#include "base/escape.hpp"
#include "text/json_fields.hpp"
#include "text/post_processor/parts.hpp"

namespace masque::text {

namespace {

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

const PostProcessorRegistration kRegistration{{"TemplateProcessing", make_template_processing}};

}  // namespace

}  // namespace masque::text
