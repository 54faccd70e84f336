// Options of corruptions, for commands that apply them to records and for those that train on the
// result.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "commands/selection_options.hpp"
#include "records/drop.hpp"
#include "records/mlm.hpp"
#include "records/perm.hpp"
#include "records/prefix.hpp"

namespace masque::commands {

/// Masked language modelling.
struct MlmChoice {
  SelectionChoice selection = {};
  std::string split = "0.8:0.1:0.1";
  std::uint64_t draws = 0;
  bool fixed_selection = false;
};
/// The options of a selection, --split, --draws, --fixed-selection.
void add_mlm(cli::Command& command, MlmChoice& options);
/// The options as the library takes them, without similar tokens. Throws UsageError.
records::MlmOptions mlm_of(const MlmChoice& options, std::uint64_t seed);

/// --replace of masked language modelling.
void add_replace(cli::Command& command, std::string& replace);
/// The FILE of "similar:FILE"; nothing of "mask". Throws UsageError for any other text.
std::optional<std::string> similar_file_of(const std::string& replace);

/// --perm-size, --alpha, --beta of permutations. `whose` begins each help: "plm: ".
void add_perm(cli::Command& command, records::PermOptions& options, const std::string& whose = "");

/// Sequences of a source and a target, and mixtures of objectives.
struct PrefixChoice {
  std::string source = "0.2:0.8";
  std::string mix = "0:1:0:0";
};
/// --source, --mix; `whose` as for add_perm.
void add_prefix(cli::Command& command, PrefixChoice& options, const std::string& whose = "");
/// The options as the library takes them, without a seed. Throws UsageError.
records::PrefixOptions prefix_of(const PrefixChoice& options);

/// DropToken next to an objective of training.
struct DropChoice {
  std::optional<double> rate = {};
  std::optional<std::uint64_t> min_keep = {};
  bool renumber = false;
};
/// What help says of them: it differs by what is dropped.
struct DropHelp {
  std::string rate;
  std::string min_keep;
};
/// --drop, --min-keep, --renumber.
void add_drop(cli::Command& command, DropChoice& options, const DropHelp& help);
/// Throws UsageError for what does nothing without --drop. `min_keep_alone`: --min-keep does.
void check_drop(const DropChoice& options, bool min_keep_alone);
/// The options as the library takes them, without a seed; the rate is 0 without --drop.
records::DropOptions drop_of(const DropChoice& options);

/// --min-keep of a command that does nothing but drop tokens.
void add_min_keep(cli::Command& command, std::uint64_t& tokens);
/// --renumber; `whose` as for add_perm.
void add_renumber(cli::Command& command, bool& renumber, const std::string& whose = "");

}  // namespace masque::commands
