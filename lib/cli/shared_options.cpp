#include "cli/shared_options.hpp"

namespace masque::cli {

void add_checkpoint(Command& command, std::string& path, const std::string& name) {
  command.argument(
      name, path,
      "checkpoint: a file, a folder, an index of shards, or hf:OWNER/NAME of the local "
      "Hugging Face cache");
}

void add_no_special_in_text(Command& command, bool& no_special_in_text) {
  command.flag("--no-special-in-text", no_special_in_text,
               "reads special tokens in the text, like [MASK], as plain text");
}

void add_force(Command& command, bool& force) {
  command.flag("--force", force,
               "replaces an existing output folder, unless files other than weights would be lost");
}

}  // namespace masque::cli
