#include "cli/shared_options.hpp"

namespace masque::cli {

void add_checkpoint(Command& command, std::string& path, const std::string& name) {
  command.argument(name, path, "a file, a folder or an index");
}

void add_no_special_in_text(Command& command, bool& no_special_in_text) {
  command.flag("--no-special-in-text", no_special_in_text,
               "special tokens that stand in the text are text");
}

void add_force(Command& command, bool& force) {
  command.flag("--force", force, "replaces an output folder, if no file but weights would be lost");
}

}  // namespace masque::cli
