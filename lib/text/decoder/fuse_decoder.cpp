// Fuse: all tokens become one.
#include "text/decoder.hpp"

namespace masque::text {

namespace {

class FuseDecoder final : public Decoder {
 public:
  void decode(std::vector<std::string>& tokens) const override {
    std::string all;
    for (const std::string& token : tokens) all += token;
    tokens.clear();
    tokens.push_back(std::move(all));
  }
};

std::unique_ptr<Decoder> make_fuse_decoder(const JsonValue& /*json*/, const std::string& /*path*/) {
  return std::make_unique<FuseDecoder>();
}

const DecoderRegistration kRegistration{{"Fuse", make_fuse_decoder}};

}  // namespace

}  // namespace masque::text
