// Measures attention heads and tests models.
#include "cli/run_tool.hpp"
#include "commands.hpp"

int main(int argc, char** argv) {
  return masque::cli::run_tool("attn-probe", "measures attention heads over a corpus", argc, argv,
                               [](masque::cli::Command& tool) {
                                 tool.example(
                                     "attn-probe stats bert-base-uncased/ < text > heads.tsv",
                                     "entropy, distance, masses and more of every head");
                                 masque::attn_probe::declare_stats(tool);
                                 masque::attn_probe::declare_merge(tool);
                               });
}
