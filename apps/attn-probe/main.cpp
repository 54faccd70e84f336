// Measures attention heads and tests models.
#include "cli/run_tool.hpp"
#include "commands.hpp"

int main(int argc, char** argv) {
  return masque::cli::run_tool(
      "attn-probe", "measures attention heads over a corpus and tests models", argc, argv,
      [](masque::cli::Command& tool) {
        tool.example("attn-probe check leak gpt2/ < text",
                     "exit 1 and a place if an output depends on later tokens");
        masque::attn_probe::declare_check(tool);
        masque::attn_probe::declare_consistency(tool);
        masque::attn_probe::declare_probe(tool);
        masque::attn_probe::declare_ablate(tool);
      });
}
