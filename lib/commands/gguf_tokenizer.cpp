#include "commands/gguf_tokenizer.hpp"

#include "base/error.hpp"
#include "base/thread/parallel.hpp"
#include "store/checkpoint.hpp"
#include "store/gguf/gguf_names.hpp"
#include "store/gguf/gguf_tokenizer.hpp"

namespace masque::commands {

std::optional<text::Tokenizer> open_gguf_tokenizer(const std::string& path) {
  std::optional<store::Checkpoint> checkpoint;
  const auto unread = input_error_message([&] { checkpoint = store::open_checkpoint(path); });
  if (unread || !store::has_gguf_names(*checkpoint)) return std::nullopt;
  return text::Tokenizer(text::read_gguf_vocabulary(store::gguf_vocabulary(*checkpoint), path));
}

}  // namespace masque::commands
