// Trains small language models of any design on a CPU.
#include "cli/run_tool.hpp"
#include "train_options.hpp"

int main(int argc, char** argv) {
  return masque::cli::run_tool("lm-train", "trains small language models of any design on a CPU",
                               argc, argv, masque::lm_train::declare_train);
}
