// Makes, lists, checks, compares and converts checkpoints.
#include "cli/run_tool.hpp"
#include "commands.hpp"

int main(int argc, char** argv) {
  return masque::cli::run_tool(
      "ckpt", "makes, lists, checks, compares and converts checkpoints", argc, argv,
      [](masque::cli::Command& tool) {
        tool.example("ckpt ls model.safetensors", "lists the tensors");
        masque::ckpt::declare_ls(tool);
      });
}
