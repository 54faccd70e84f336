// Makes larger models of trained ones, with the same function.
#include "cli/run_tool.hpp"
#include "commands.hpp"

int main(int argc, char** argv) {
  return masque::cli::run_tool(
      "ckpt-grow", "makes larger models of trained ones, as a rule with the same function", argc,
      argv, [](masque::cli::Command& tool) {
        tool.example("ckpt-grow width bert-base-uncased/ -o wide/ --factor 2",
                     "twice the width: every logit stays what it was");
        tool.example("ckpt-grow depth gpt2/ -o deep/ --layers 18 --verify",
                     "six layers more, which add nothing until training changes them");
        tool.example("ckpt-grow check bert-base-uncased/ wide/ < text",
                     "the largest difference of logits and states on a text");
        masque::ckpt_grow::declare_width(tool);
        masque::ckpt_grow::declare_depth(tool);
        masque::ckpt_grow::declare_both(tool);
        masque::ckpt_grow::declare_check(tool);
      });
}
