// Draws attention masks, and proves what information flows through layers that use them.
#include "cli/run_tool.hpp"
#include "commands.hpp"

int main(int argc, char** argv) {
  return masque::cli::run_tool(
      "mask-viz",
      "draws attention masks, and proves which tokens reach which outputs through masked layers",
      argc, argv, [](masque::cli::Command& tool) {
        tool.example("mask-viz show 'causal | prefix(4)' -n 12",
                     "a prefix-LM mask in the terminal");
        tool.example("mask-viz flow tta -n 8 -L 3 --query position --predict self",
                     "tests whether three such layers leak; exit 1 and a path if they do");
        masque::mask_viz::declare_list(tool);
        masque::mask_viz::declare_model(tool);
        masque::mask_viz::declare_show(tool);
        masque::mask_viz::declare_report(tool);
        masque::mask_viz::declare_flow(tool);
        masque::mask_viz::declare_diff(tool);
        masque::mask_viz::declare_identify(tool);
        masque::mask_viz::declare_convert(tool);
      });
}
