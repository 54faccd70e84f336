#include "in_place_choice.hpp"

#include "base/error.hpp"

namespace masque::embed_fix {

void add_wait(cli::Command& command, std::optional<double>& seconds, const std::string& when) {
  command.option("--wait", "SECONDS", seconds, cli::AllowedRange{0, 1e6},
                 when + "waits up to SECONDS for other processes that change it [0]");
}

void add_in_place(cli::Command& command, InPlaceChoice& choice) {
  command.flag("--in-place", choice.in_place,
               "changes CHECKPOINT itself, completely or not at all; instead of -o");
  add_wait(command, choice.wait_seconds, "with --in-place: ");
}

void check_output(const std::optional<std::string>& out, bool force, const InPlaceChoice& choice,
                  bool dry_run) {
  if (out && choice.in_place) throw UsageError("-o cannot be combined with --in-place");
  if (choice.wait_seconds && !choice.in_place) throw UsageError("--wait needs --in-place");
  if (force && choice.in_place)
    throw UsageError("--force cannot be combined with --in-place, which replaces no folder");
  if (!out && !choice.in_place && !dry_run)
    throw UsageError("no -o OUTPUT, expected one (or --in-place or --dry-run)");
}

}  // namespace masque::embed_fix
