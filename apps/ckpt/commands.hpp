// The commands of ckpt, one file each.
#pragma once

#include "cli/command.hpp"

namespace masque::ckpt {

void declare_ls(cli::Command& tool);

}  // namespace masque::ckpt
