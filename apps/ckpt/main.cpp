// Makes, lists, checks, compares and converts checkpoints.
#include "cli/run_tool.hpp"
#include "commands.hpp"

int main(int argc, char** argv) {
  return masque::cli::run_tool("ckpt", "makes, lists, checks, compares and converts checkpoints",
                               argc, argv, [](masque::cli::Command& tool) {
                                 tool.example("ckpt ls model.safetensors", "lists the tensors");
                                 tool.example(
                                     "ckpt check bert-base/ && ckpt diff bert-base/ other/",
                                     "validates a checkpoint and compares it with another one");
                                 masque::ckpt::declare_new(tool);
                                 masque::ckpt::declare_ls(tool);
                                 masque::ckpt::declare_stats(tool);
                                 masque::ckpt::declare_check(tool);
                                 masque::ckpt::declare_cat(tool);
                                 masque::ckpt::declare_diff(tool);
                                 masque::ckpt::declare_hash(tool);
                                 masque::ckpt::declare_convert(tool);
                                 masque::ckpt::declare_rename(tool);
                                 masque::ckpt::declare_merge_adapter(tool);
                               });
}
