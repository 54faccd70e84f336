// Tokenizers by the rules of libsentencepiece.
#include "base/error.hpp"
#include "text/tokenizer_files.hpp"

namespace masque::text {

TokenizerParts read_spiece_by_its_rules(SpieceModel /*spiece*/, const std::string& path) {
  throw InputError(path, "SentencePiece's rules, expected --flavor hf");
}

}  // namespace masque::text
