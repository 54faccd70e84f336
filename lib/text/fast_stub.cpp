#include "text/fast_encoder.hpp"
namespace masque::text {
namespace {
class Plain final : public FastEncoder {
 public:
  explicit Plain(Steps steps) : steps_(std::move(steps)) {}
  void encode(std::string_view text, std::vector<TokenId>& ids) override {
    if (text.empty()) return;
    std::vector<AlignedText> words{AlignedText::from(text)};
    if (steps_.normalizer) steps_.normalizer->apply(words[0]);
    if (words[0].text.empty()) return;
    if (steps_.pre_tokenizer) steps_.pre_tokenizer->split(words, true);
    std::vector<Piece> pieces;
    for (const auto& w : words) steps_.model->tokenize(w.text, pieces);
    for (const auto& p : pieces) ids.push_back(p.id);
  }
  Steps steps_;
};
}  // namespace
std::unique_ptr<FastEncoder> make_plain_encoder(Steps steps) { return std::make_unique<Plain>(steps); }
std::unique_ptr<FastEncoder> make_bert_encoder(Steps steps, const BertFields&) { return make_plain_encoder(steps); }
std::unique_ptr<FastEncoder> make_byte_level_encoder(Steps steps, bool) { return make_plain_encoder(steps); }
std::unique_ptr<FastEncoder> make_metaspace_encoder(Steps steps, Prepend) { return make_plain_encoder(steps); }
}  // namespace masque::text
