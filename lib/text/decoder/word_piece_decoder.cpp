// WordPiece: pieces without "prefix" ("##") begin a word; with "cleanup" (true) spaces before
// punctuation go.
#include "text/decoder.hpp"
#include "text/json_fields.hpp"

namespace masque::text {

namespace {

class WordPieceDecoder final : public Decoder {
 public:
  WordPieceDecoder(std::string prefix, bool clean) : prefix_(std::move(prefix)), clean_(clean) {}

  void decode(std::vector<std::string>& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (i != 0) {
        if (tokens[i].starts_with(prefix_)) {
          tokens[i].erase(0, prefix_.size());
        } else {
          tokens[i].insert(0, " ");
        }
      }
      if (clean_) clean_up_spaces(tokens[i]);
    }
  }

 private:
  std::string prefix_;
  bool clean_;
};

std::unique_ptr<Decoder> make_word_piece_decoder(const JsonValue& json, const std::string& path) {
  return std::make_unique<WordPieceDecoder>(text_field(json, "prefix", "##", path),
                                            bool_field(json, "cleanup", true, path));
}

const DecoderRegistration kRegistration{{"WordPiece", make_word_piece_decoder}};

}  // namespace

}  // namespace masque::text
