#include "input.hpp"

namespace masque::tok {

void add_flavor(cli::Command& command, text::TokenizerOptions& options) {
  using text::Flavor;
  command.choice(
      "--flavor", options.flavor,
      {{"auto", Flavor::kAuto},
       {"hf", Flavor::kHuggingFace},
       {"google", Flavor::kGoogle},
       {"bert4keras", Flavor::kBert4Keras},
       {"spm", Flavor::kSentencePiece}},
      "implementation to follow for vocab.txt (hf, google, bert4keras) and spiece.model (hf, "
      "spm); auto: hf, but spm for a spiece.model of an unknown architecture");
}

text::Tokenizer open_tokenizer(const std::string& path, const text::TokenizerOptions& options,
                               cli::Session& session) {
  text::Tokenizer tokenizer = text::Tokenizer::open(path, options);
  session.notes(tokenizer.parts().path, tokenizer.warnings());
  return tokenizer;
}

}  // namespace masque::tok
