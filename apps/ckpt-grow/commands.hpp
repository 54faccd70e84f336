// The sub-commands of ckpt-grow.
#pragma once

#include "cli/command.hpp"

namespace masque::ckpt_grow {

void declare_width(cli::Command& tool);
void declare_depth(cli::Command& tool);
void declare_both(cli::Command& tool);
void declare_check(cli::Command& tool);

}  // namespace masque::ckpt_grow
