// The benchmarks, one file each.
#pragma once

#include "cli/command.hpp"

namespace masque::bench {

void declare_attention(cli::Command& tool);
void declare_block_map(cli::Command& tool);
void declare_encode(cli::Command& tool);
void declare_corrupt(cli::Command& tool);
void declare_flow(cli::Command& tool);
void declare_forward(cli::Command& tool);
void declare_generate(cli::Command& tool);
void declare_identify(cli::Command& tool);
void declare_kernels(cli::Command& tool);
void declare_peak(cli::Command& tool);
void declare_training(cli::Command& tool);

}  // namespace masque::bench
