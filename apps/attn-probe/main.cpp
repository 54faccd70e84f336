// Measures attention heads and hidden states of real checkpoints, and tests models.
#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "kernel/onednn/library_version.hpp"

int main(int argc, char** argv) {
  return masque::cli::run_tool(
      "attn-probe", "measures attention heads and hidden states of real checkpoints", argc, argv,
      [](masque::cli::Command& tool) {
        tool.example("attn-probe stats bert-base-uncased/ < text > heads.tsv",
                     "entropy, distance, sinks and more for every head");
        tool.example("attn-probe map bert-base-uncased/ --text 'the cat sat' -o heads.html",
                     "writes an interactive page with all heads");
        tool.example(
            "attn-probe check leak gpt2/ < text",
            "exit 1 if an output depends on a later token; reports layer, text and position");
        tool.version_line(masque::kernel::library_version);
        masque::attn_probe::declare_stats(tool);
        masque::attn_probe::declare_fields(tool);
        masque::attn_probe::declare_map(tool);
        masque::attn_probe::declare_check(tool);
        masque::attn_probe::declare_consistency(tool);
        masque::attn_probe::declare_probe(tool);
        masque::attn_probe::declare_ablate(tool);
        masque::attn_probe::declare_depth(tool);
        masque::attn_probe::declare_visible(tool);
        masque::attn_probe::declare_variants(tool);
        masque::attn_probe::declare_merge(tool);
      });
}
