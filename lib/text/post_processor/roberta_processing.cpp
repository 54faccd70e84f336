// RobertaProcessing: <s> A </s></s> B </s>, all of type 0, with "cls" and "sep" as read_named_token
// has them; "trim_offsets" (true) and "add_prefix_space" (true) as of ByteLevel.
#include "text/json_fields.hpp"
#include "text/post_processor/parts.hpp"

namespace masque::text {

namespace {

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

const PostProcessorRegistration kRegistration{{"RobertaProcessing", make_roberta_processing}};

}  // namespace

}  // namespace masque::text
