// Length generalisation: trained at one length, scored at others.
#include "commands.hpp"
#include "kernel/onednn/library_version.hpp"

int main(int argc, char** argv) {
  using masque::cli::Command;
  return masque::cli::run_tool(
      "length-gen", "trains models at one length and scores them at others", argc, argv,
      [](Command& tool) {
        tool.example(
            "length-gen run --text train.txt --eval-text dev.txt --tokenizer vocab.txt --position "
            "rope,alibi --train-length 64 --eval-lengths 64,128,256 --budget 5m -o DIR",
            "trains two designs and scores them at three lengths");
        tool.example(
            "length-gen run --task copy --train-length 1-10 --eval-lengths 10,20,40 --steps 500 -o "
            "DIR",
            "a synthetic task instead of text");
        tool.example(
            "length-gen eval gpt2/ --text dev.txt --eval-lengths 512,1024,2048 --position "
            "own,interpolated",
            "scores a checkpoint beyond its training length");
        tool.version_line(masque::kernel::library_version);
        masque::length_gen::declare_run(tool);
        masque::length_gen::declare_sweep(tool);
        masque::length_gen::declare_collect(tool);
        masque::length_gen::declare_eval(tool);
        masque::length_gen::declare_probe(tool);
        masque::length_gen::declare_treatments(tool);
        masque::length_gen::declare_lowrank(tool);
        masque::length_gen::declare_tasks(tool);
      });
}
