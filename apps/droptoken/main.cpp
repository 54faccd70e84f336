// Corrupts training data reproducibly: records in, records out.
#include "cli/run_tool.hpp"
#include "commands.hpp"

int main(int argc, char** argv) {
  return masque::cli::run_tool(
      "droptoken", "corrupts training data reproducibly: reads records or text, writes records",
      argc, argv, [](masque::cli::Command& tool) {
        tool.example("droptoken drop --tokenizer bert-base/ --rate 0.15 < text > records",
                     "removes 15 % of the tokens; the rest keep their positions");
        tool.example("droptoken mlm --tokenizer bert-base/ --unit word < text > records",
                     "whole-word masking");
        masque::droptoken::declare_drop(tool);
        masque::droptoken::declare_mlm(tool);
        masque::droptoken::declare_mdlm(tool);
        masque::droptoken::declare_perm(tool);
        masque::droptoken::declare_electra(tool);
        masque::droptoken::declare_mae(tool);
        masque::droptoken::declare_bart(tool);
        masque::droptoken::declare_noise(tool);
        masque::droptoken::declare_prefix(tool);
        masque::droptoken::declare_pack(tool);
        masque::droptoken::declare_undo(tool);
        masque::droptoken::declare_stats(tool);
      });
}
