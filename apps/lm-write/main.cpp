// Writes text with language models.
#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "kernel/onednn/library_version.hpp"

int main(int argc, char** argv) {
  return masque::cli::run_tool(
      "lm-write", "fills masks, corrects words and continues texts with a language model", argc,
      argv, [](masque::cli::Command& tool) {
        tool.example("echo 'Paris is the [MASK] of France.' | lm-write fill bert-base-uncased/",
                     "the five most probable tokens");
        tool.example("lm-write correct bert-base-uncased/ --edit-distance 2 < text",
                     "corrects typing errors");
        tool.example("lm-write generate gpt2/ < prompts", "continues each line");
        tool.version_line(masque::kernel::library_version);
        masque::lm_write::declare_fill(tool);
        masque::lm_write::declare_correct(tool);
        masque::lm_write::declare_generate(tool);
        masque::lm_write::declare_latent(tool);
      });
}
