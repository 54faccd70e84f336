// The commands of attn-probe, one file each.
#pragma once

#include "cli/command.hpp"

namespace masque::attn_probe {

void declare_stats(cli::Command& tool);
void declare_fields(cli::Command& tool);
void declare_map(cli::Command& tool);
void declare_check(cli::Command& tool);
void declare_consistency(cli::Command& tool);
void declare_probe(cli::Command& tool);
void declare_ablate(cli::Command& tool);
void declare_depth(cli::Command& tool);
void declare_visible(cli::Command& tool);
void declare_variants(cli::Command& tool);
void declare_merge(cli::Command& tool);

}  // namespace masque::attn_probe
