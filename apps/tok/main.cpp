// Encodes and decodes text with the tokenizers of published models, and makes new ones.
#include "cli/run_tool.hpp"
#include "commands.hpp"

int main(int argc, char** argv) {
  return masque::cli::run_tool(
      "tok",
      "encodes and decodes text with the tokenizers of published models, and trains tokenizers",
      argc, argv, [](masque::cli::Command& tool) {
        tool.example("tok encode bert-base-uncased/ < text", "prints the ids of each line");
        tool.example("tok encode gpt2/ < text | tok decode gpt2/", "encodes and decodes");
        masque::tok::declare_encode(tool);
        masque::tok::declare_decode(tool);
        masque::tok::declare_count(tool);
        masque::tok::declare_diff(tool);
        masque::tok::declare_info(tool);
        masque::tok::declare_check(tool);
        masque::tok::declare_merge(tool);
        masque::tok::declare_train(tool);
      });
}
