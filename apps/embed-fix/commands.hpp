// The commands of embed-fix.
#pragma once

#include "cli/command.hpp"

namespace masque::embed_fix {

void declare_mlm_correct(cli::Command& tool);
void declare_add(cli::Command& tool);
/// remove, keep and permute.
void declare_listed_rows(cli::Command& tool);
void declare_resize(cli::Command& tool);
void declare_rename(cli::Command& tool);
void declare_swap_vocab(cli::Command& tool);
void declare_case(cli::Command& tool);
void declare_positions(cli::Command& tool);
void declare_types(cli::Command& tool);
void declare_expr(cli::Command& tool);
void declare_norm(cli::Command& tool);
void declare_tie(cli::Command& tool);
void declare_untie(cli::Command& tool);
void declare_recover(cli::Command& tool);
void declare_tables(cli::Command& tool);
void declare_stats(cli::Command& tool);
void declare_neighbours(cli::Command& tool);
void declare_diff(cli::Command& tool);

}  // namespace masque::embed_fix
