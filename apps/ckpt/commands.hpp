// The commands of ckpt, one file each.
#pragma once

#include "cli/command.hpp"

namespace masque::ckpt {

void declare_new(cli::Command& tool);
void declare_ls(cli::Command& tool);
void declare_stats(cli::Command& tool);
void declare_check(cli::Command& tool);
void declare_cat(cli::Command& tool);
void declare_diff(cli::Command& tool);
void declare_hash(cli::Command& tool);
void declare_convert(cli::Command& tool);
void declare_rename(cli::Command& tool);
void declare_merge_adapter(cli::Command& tool);

}  // namespace masque::ckpt
