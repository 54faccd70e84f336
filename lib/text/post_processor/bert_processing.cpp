// BertProcessing: [CLS] A [SEP] B [SEP], with "cls" and "sep" as read_named_token has them.
#include "text/json_fields.hpp"
#include "text/post_processor/parts.hpp"

namespace masque::text {

namespace {

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

const PostProcessorRegistration kRegistration{{"BertProcessing", make_bert_processing}};

}  // namespace

NamedToken read_named_token(const JsonValue& json, std::string_view name, const std::string& path) {
  const JsonValue& pair = get_field(json, name, JsonKind::kArray, path);
  const auto id = pair.items.size() == 2 ? pair.items[1].integer() : std::nullopt;
  if (!id || *id > 0x7FFFFFFF || !pair.items[0].is(JsonKind::kString))
    refuse_json(pair, path, "expected [token, id]");
  return {pair.items[0].text, static_cast<TokenId>(*id)};
}

}  // namespace masque::text
