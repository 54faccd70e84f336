// The commands of lm-score, one file each.
#pragma once

#include "cli/command.hpp"

namespace masque::lm_score {

void declare_score(cli::Command& tool);
void declare_pairs(cli::Command& tool);
void declare_dump(cli::Command& tool);
void declare_choose(cli::Command& tool);
void declare_ppl(cli::Command& tool);
void declare_embed(cli::Command& tool);
void declare_sim(cli::Command& tool);
void declare_rescore(cli::Command& tool);
void declare_compare(cli::Command& tool);
void declare_merge(cli::Command& tool);

}  // namespace masque::lm_score
