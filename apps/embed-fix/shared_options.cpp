#include "shared_options.hpp"

#include "base/error.hpp"

namespace masque::embed_fix {

void add_output(cli::Command& command, std::optional<std::string>& out) {
  command.option("-o,--output", "OUTPUT", out,
                 "output: a file for a file, a new folder for a folder");
}

void add_tensor(cli::Command& command, std::optional<std::string>& tensor,
                const std::string& table) {
  command.option("--tensor", "NAME", tensor, table + " [found automatically]");
}

void add_verify(cli::Command& command, bool& verify) {
  command.flag("--verify", verify,
               "reads the output back and proves that everything else is bit-identical");
}

void add_verified(cli::Report& report, const surgery::VerifyResult& found) {
  report.add("verified_tensors", found.tensors_unchanged);
  report.add("verified_bytes", found.bytes_unchanged);
  report.add("verified_files", found.files_unchanged);
  report.add("xxh3_before", found.digest_before);
  report.add("xxh3_after", found.digest_after);
}

void add_multiple(cli::Command& command, std::uint64_t& multiple, const std::string& what) {
  command.option("--multiple", "M", multiple, what + " up to a multiple of M");
}

void add_report_options(cli::Command& command, cli::CommonOptions& common) {
  add_threads(command, common);
  add_report(command, common);
  add_quiet(command, common);
  add_verbose(command, common);
}

void add_wait(cli::Command& command, std::optional<double>& seconds, const std::string& when) {
  command.option("--wait", "SECONDS", seconds, cli::AllowedRange{0, 1e6},
                 when + "waits up to SECONDS for other processes that change it [0]");
}

void add_in_place(cli::Command& command, InPlaceChoice& choice) {
  command.flag("--in-place", choice.in_place,
               "changes CHECKPOINT itself, completely or not at all; instead of -o");
  add_wait(command, choice.wait_seconds, "with --in-place: ");
  command.changes("CHECKPOINT", "--in-place");
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
