// Trains small language models of any design on a CPU.
#include "classify_options.hpp"
#include "cli/run_tool.hpp"
#include "train_options.hpp"

int main(int argc, char** argv) {
  return masque::cli::run_tool("lm-train", "trains small language models of any design on a CPU",
                               argc, argv, [](masque::cli::Command& tool) {
                                 masque::lm_train::declare_train(tool);
                                 masque::lm_train::declare_classify(tool);
                               });
}
