#include "shared_options.hpp"

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

}  // namespace masque::embed_fix
