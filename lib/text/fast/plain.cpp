#include "text/fast/plain.hpp"

namespace masque::text {

namespace {

class PlainEncoder final : public FastEncoder {
 public:
  explicit PlainEncoder(Steps steps) : plain_(std::move(steps)) {}
  void encode(std::string_view text, std::vector<TokenId>& ids) override { plain_.text(text, ids); }

 private:
  PlainSteps plain_;
};

}  // namespace

std::unique_ptr<FastEncoder> make_plain_encoder(Steps steps) {
  return std::make_unique<PlainEncoder>(std::move(steps));
}

}  // namespace masque::text
