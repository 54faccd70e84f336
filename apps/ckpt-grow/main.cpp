// Makes larger models of trained ones, with the same function.
#include "cli/run_tool.hpp"
#include "commands.hpp"

int main(int argc, char** argv) {
  return masque::cli::run_tool(
      "ckpt-grow", "makes trained models wider or deeper, by default with unchanged outputs", argc,
      argv, [](masque::cli::Command& tool) {
        tool.example("ckpt-grow width bert-base-uncased/ -o wide/ --factor 2",
                     "twice as wide, with the same logits");
        tool.example("ckpt-grow depth gpt2/ -o deep/ --layers 18 --verify",
                     "adds 6 layers, which change nothing until they are trained");
        tool.example("ckpt-grow check bert-base-uncased/ wide/ < text",
                     "prints the largest difference of logits and hidden states on a text");
        masque::ckpt_grow::declare_width(tool);
        masque::ckpt_grow::declare_depth(tool);
        masque::ckpt_grow::declare_both(tool);
        masque::ckpt_grow::declare_check(tool);
      });
}
