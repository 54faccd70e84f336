#include "cli/shared_options.hpp"

namespace masque::cli {

void add_checkpoint(Command& command, std::string& path, const std::string& name) {
  command.argument(name, path, "a file, a folder or an index");
}

void add_force(Command& command, bool& force) {
  command.flag("--force", force, "replaces an output folder, if no file but weights would be lost");
}

}  // namespace masque::cli
