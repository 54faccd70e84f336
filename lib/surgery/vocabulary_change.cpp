#include "surgery/vocabulary_change.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace masque {

// vocab.txt alone: the other files of tokenizers come with the file of this name from a
// neighbouring branch.
std::vector<std::string> change_vocabulary_files(CheckpointEdit& edit, const TokenNames& before,
                                                 const VocabularyChange& change) {
  if (!edit.checkpoint().is_folder() || before.empty()) return {};
  if (before.source() != "vocab.txt")
    throw InputError(before.source(), "cannot be changed yet, only vocab.txt can");
  std::size_t count = change.tokens.size();
  while (count > 0 && change.tokens[count - 1].empty()) --count;
  std::string text;
  for (std::size_t id = 0; id < count; ++id) text += change.tokens[id] + "\n";
  if (text != edit.file_text("vocab.txt")) edit.set_file("vocab.txt", std::move(text));
  return {};
}

}  // namespace masque
