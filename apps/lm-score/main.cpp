// Scores text with language models.
#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "kernel/onednn/library_version.hpp"

int main(int argc, char** argv) {
  return masque::cli::run_tool(
      "lm-score", "scores texts, sentence pairs, labels and n-best lists with language models",
      argc, argv, [](masque::cli::Command& tool) {
        tool.example("lm-score score bert-base-uncased/ < text",
                     "the pseudo-log-likelihood of each line");
        tool.example("lm-score pairs gpt2/ blimp/*.jsonl", "accuracy on minimal pairs");
        tool.example("lm-score compare hyp.txt ref.txt", "BLEU, chrF, ROUGE-L, WER of texts");
        tool.version_line(masque::kernel::library_version);
        masque::lm_score::declare_score(tool);
        masque::lm_score::declare_pairs(tool);
        masque::lm_score::declare_ppl(tool);
        masque::lm_score::declare_choose(tool);
        masque::lm_score::declare_embed(tool);
        masque::lm_score::declare_sim(tool);
        masque::lm_score::declare_rescore(tool);
        masque::lm_score::declare_compare(tool);
        masque::lm_score::declare_dump(tool);
        masque::lm_score::declare_merge(tool);
      });
}
