// Times what the tools are built on. For developers: never installed.
#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "kernel/onednn/library_version.hpp"

int main(int argc, char** argv) {
  return masque::cli::run_tool(
      "bench", "times kernels and whole models", argc, argv, [](masque::cli::Command& tool) {
        tool.version_line(masque::kernel::library_version);
        tool.example("bench block-map -n 4096", "time to find the blocks of masks");
        tool.example("bench flow -n 4096 -L 12", "information flow");
        masque::bench::declare_attention(tool);
        masque::bench::declare_block_map(tool);
        masque::bench::declare_encode(tool);
        masque::bench::declare_corrupt(tool);
        masque::bench::declare_flow(tool);
        masque::bench::declare_forward(tool);
        masque::bench::declare_generate(tool);
        masque::bench::declare_identify(tool);
        masque::bench::declare_kernels(tool);
        masque::bench::declare_peak(tool);
        masque::bench::declare_training(tool);
      });
}
