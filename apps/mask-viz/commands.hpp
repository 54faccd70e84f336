// The commands of mask-viz, one file each.
#pragma once

#include "cli/command.hpp"

namespace masque::mask_viz {

void declare_list(cli::Command& tool);
void declare_model(cli::Command& tool);
void declare_show(cli::Command& tool);
void declare_report(cli::Command& tool);
void declare_flow(cli::Command& tool);
void declare_diff(cli::Command& tool);
void declare_identify(cli::Command& tool);
void declare_convert(cli::Command& tool);

}  // namespace masque::mask_viz
