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
  SelectionChoice selection = {};     ///< which tokens are selected
  std::string split = "0.8:0.1:0.1";  ///< shares of them: [MASK], kept, random
  std::uint64_t draws = 0;            ///< masks repeat every so many epochs; 0: never
  bool fixed_selection = false;       ///< the same tokens are selected in every epoch
};
/// Declares the options of a selection, --split, --draws and --fixed-selection of `command`;
/// `options` holds their targets.
void add_mlm(cli::Command& command, MlmChoice& options);
/// `options` as the library takes them, with `seed`, without similar tokens. Throws UsageError for
/// a split that is not three numbers from 0, and as selection_of.
records::MlmOptions mlm_of(const MlmChoice& options, std::uint64_t seed);

/// Declares --replace of a `command` with masked language modelling; `replace` receives "mask" or
/// "similar:FILE".
void add_replace(cli::Command& command, std::string& replace);
/// The FILE if `replace` is "similar:FILE"; nothing for "mask". Throws UsageError for any other
/// text.
std::optional<std::string> similar_file_of(const std::string& replace);

/// Declares --perm-size, --alpha, --beta, --no-spans and --causal-blocks of `command`, with
/// `options` as their targets; `whose` begins each help: "plm: ".
void add_perm(cli::Command& command, records::PermOptions& options, const std::string& whose = "");

/// Sequences of a source and a target, and mixtures of objectives.
struct PrefixChoice {
  std::string source = "0.2:0.8";  ///< share that is the source: LOW:HIGH, or one number
  std::string mix = "0:1:0:0";     ///< weights: masked, source to target, forward, backward
};
/// Declares --source and --mix of `command`, with `options` as their targets; `whose` as for
/// add_perm.
void add_prefix(cli::Command& command, PrefixChoice& options, const std::string& whose = "");
/// `options` as the library takes them, without a seed. Throws UsageError for a source that is not
/// one or two numbers from 0, and a mix that is not four.
records::PrefixOptions prefix_of(const PrefixChoice& options);

/// DropToken next to an objective of training.
struct DropChoice {
  std::optional<double> rate = {};  ///< share of the tokens to drop, from 0 to 0.99; none: 0
  std::optional<std::uint64_t> min_keep = {};  ///< tokens that stay at least; none: 1
  bool renumber = false;                       ///< positions count anew from 0
};
/// What help says of them: it differs by what is dropped.
struct DropHelp {
  std::string rate;      ///< of --drop
  std::string min_keep;  ///< of --min-keep
};
/// Declares --drop (from 0 to 0.99), --min-keep and --renumber of `command`, with `options` as
/// their targets and texts of `help`.
void add_drop(cli::Command& command, DropChoice& options, const DropHelp& help);
/// Throws UsageError if `options` have what does nothing without --drop. `min_keep_alone`:
/// --min-keep does.
void check_drop(const DropChoice& options, bool min_keep_alone);
/// `options` as the library takes them, without a seed; without --drop the rate is 0, without
/// --min-keep one token is kept.
records::DropOptions drop_of(const DropChoice& options);

/// Declares --min-keep of a `command` that does nothing but drop tokens; the initial `tokens` is
/// the default.
void add_min_keep(cli::Command& command, std::uint64_t& tokens);
/// Declares --renumber of `command`, with `renumber` as its target; `whose` as for add_perm.
void add_renumber(cli::Command& command, bool& renumber, const std::string& whose = "");

}  // namespace masque::commands
