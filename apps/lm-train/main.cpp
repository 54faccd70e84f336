// Trains small language models of any design on a CPU.
#include "classify_options.hpp"
#include "cli/run_tool.hpp"
#include "kernel/onednn/library_version.hpp"
#include "launch.hpp"
#include "sweep.hpp"
#include "train_options.hpp"

int main(int argc, char** argv) {
  masque::lm_train::Launch launch(argc, argv);
  const int code =
      masque::cli::run_tool("lm-train", "trains small language models of any design on a CPU", argc,
                            argv, [&](masque::cli::Command& tool) {
                              tool.version_line(masque::kernel::library_version);
                              masque::lm_train::declare_train(tool, launch);
                              masque::lm_train::declare_classify(tool, launch);
                              masque::lm_train::declare_sweep(tool);
                              masque::lm_train::declare_collect(tool);
                            });
  return launch.leave(code);
}
