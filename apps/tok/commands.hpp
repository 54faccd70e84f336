// The commands of tok, one file each.
#pragma once

#include "cli/command.hpp"

namespace masque::tok {

void declare_encode(cli::Command& tool);
void declare_decode(cli::Command& tool);
void declare_count(cli::Command& tool);
void declare_diff(cli::Command& tool);
void declare_info(cli::Command& tool);
void declare_check(cli::Command& tool);
void declare_merge(cli::Command& tool);
void declare_train(cli::Command& tool);

}  // namespace masque::tok
