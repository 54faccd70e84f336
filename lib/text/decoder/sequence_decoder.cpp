// Sequence: one of "decoders" after another.
#include "text/decoder.hpp"
#include "text/json_fields.hpp"

namespace masque::text {

namespace {

class SequenceDecoder final : public Decoder {
 public:
  explicit SequenceDecoder(std::vector<std::unique_ptr<Decoder>> steps)
      : steps_(std::move(steps)) {}

  void decode(std::vector<std::string>& tokens) const override {
    for (const auto& step : steps_) step->decode(tokens);
  }

 private:
  std::vector<std::unique_ptr<Decoder>> steps_;
};

std::unique_ptr<Decoder> make_sequence_decoder(const JsonValue& json, const std::string& path) {
  std::vector<std::unique_ptr<Decoder>> steps;
  for (const JsonValue& item : get_field(json, "decoders", JsonKind::kArray, path).items)
    steps.push_back(make_decoder(item, path));
  return std::make_unique<SequenceDecoder>(std::move(steps));
}

const DecoderRegistration kRegistration{{"Sequence", make_sequence_decoder}};

}  // namespace

}  // namespace masque::text
