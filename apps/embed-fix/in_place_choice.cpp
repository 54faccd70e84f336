#include "in_place_choice.hpp"

#include "base/error.hpp"

namespace masque::embed_fix {

void add_wait(cli::Command& command, std::optional<double>& seconds, const std::string& when) {
  command.option("--wait", "SECONDS", seconds, cli::AllowedRange{0, 1e6},
                 when + "waits for other processes that change it [0]");
}

void add_in_place(cli::Command& command, InPlaceChoice& choice) {
  command.flag("--in-place", choice.in_place,
               "changes CHECKPOINT itself, all of it or nothing; without -o");
  add_wait(command, choice.wait_seconds, "with --in-place: ");
}

void check_output(const std::optional<std::string>& out, bool force, const InPlaceChoice& choice,
                  bool dry_run) {
  if (out && choice.in_place) throw UsageError("-o and --in-place exclude each other");
  if (choice.wait_seconds && !choice.in_place)
    throw UsageError("--wait belongs to --in-place, which was not given");
  if (force && choice.in_place)
    throw UsageError("--force belongs to -o: --in-place replaces no folder");
  if (!out && !choice.in_place && !dry_run)
    throw UsageError("no -o OUTPUT, expected one (or --in-place or --dry-run)");
}

}  // namespace masque::embed_fix
