// Patches and inspects the embeddings of checkpoints.
#include "cli/run_tool.hpp"
#include "commands.hpp"

int main(int argc, char** argv) {
  return masque::cli::run_tool(
      "embed-fix", "patches and inspects the embeddings of checkpoints", argc, argv,
      [](masque::cli::Command& tool) {
        tool.example("embed-fix mlm-correct bert-base/ -o bert-corrected/ --verify",
                     "corrects the input embeddings and proves that nothing else changed");
        tool.example("embed-fix add bert-base/ '<person>' '<place>' --init subword -o more/",
                     "adds two tokens to the tables, the config and the tokenizer files");
        tool.example("embed-fix positions bert-base/ 2048 --how hierarchical -o longer/",
                     "extends 512 positions to 2048; the first 512 stay unchanged");
        tool.example("embed-fix neighbours bert-base/ king",
                     "prints the nearest rows by cosine similarity");
        masque::embed_fix::declare_mlm_correct(tool);
        masque::embed_fix::declare_add(tool);
        masque::embed_fix::declare_listed_rows(tool);
        masque::embed_fix::declare_resize(tool);
        masque::embed_fix::declare_rename(tool);
        masque::embed_fix::declare_swap_vocab(tool);
        masque::embed_fix::declare_case(tool);
        masque::embed_fix::declare_positions(tool);
        masque::embed_fix::declare_types(tool);
        masque::embed_fix::declare_expr(tool);
        masque::embed_fix::declare_norm(tool);
        masque::embed_fix::declare_tie(tool);
        masque::embed_fix::declare_untie(tool);
        masque::embed_fix::declare_recover(tool);
        masque::embed_fix::declare_tables(tool);
        masque::embed_fix::declare_stats(tool);
        masque::embed_fix::declare_neighbours(tool);
        masque::embed_fix::declare_diff(tool);
      });
}
