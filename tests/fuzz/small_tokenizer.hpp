// The tokenizer of targets whose texts may say anything.
#pragma once

#include "support/memory_file.hpp"
#include "text/tokenizer.hpp"

namespace masque::test {

/// Characters, of which three letters and a digit are in the vocabulary of nine tokens.
inline const text::Tokenizer& small_tokenizer() {
  static const MemoryFile file("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\n1\n");
  static const text::Tokenizer tokenizer = text::Tokenizer::open("chars:" + file.path());
  return tokenizer;
}

}  // namespace masque::test
