#include "commands/corruption_options.hpp"

#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"

namespace masque::commands {

void add_mlm(cli::Command& command, MlmChoice& options) {
  add_selection(command, options.selection);
  command.option("--split", "M:K:R", options.split,
                 "shares of selected tokens that become [MASK], stay, or become random tokens");
  command.option("--draws", "S", options.draws, "repeat masks every S epochs; 0: never");
  command.flag("--fixed-selection", options.fixed_selection,
               "select the same positions in every epoch, but draw their replacements anew");
}

records::MlmOptions mlm_of(const MlmChoice& options, std::uint64_t seed) {
  const std::vector<double> split = parse_shares("split", options.split, 3, 3);
  return {.selection = selection_of(options.selection, seed),
          .mask = split[0],
          .keep = split[1],
          .random = split[2],
          .draws = options.draws,
          .fixed_selection = options.fixed_selection};
}

void add_replace(cli::Command& command, std::string& replace) {
  command.option(
      "--replace", "HOW", replace,
      "what replaces tokens: mask: [MASK]; similar:FILE: similar tokens (MacBERT), from a "
      "list, or from a checkpoint by its nearest embeddings");
}

std::optional<std::string> similar_file_of(const std::string& replace) {
  constexpr std::string_view kSimilar = "similar:";
  if (replace == "mask") return std::nullopt;
  if (!replace.starts_with(kSimilar))
    throw UsageError(fmt::format("{}: expected mask or similar:FILE", field("replace")));
  return replace.substr(kSimilar.size());
}

void add_perm(cli::Command& command, records::PermOptions& options, const std::string& whose) {
  command.option(
      "--perm-size", "N", options.perm_size,
      whose + "use one permutation for all blocks of N tokens; 0: one for the whole sequence");
  command.option("--alpha", "N", options.alpha,
                 whose + "a span of n targets lies in a context of n·alpha/beta tokens");
  command.option("--beta", "N", options.beta, whose + "see --alpha");
  command.flag("--no-spans", options.no_spans, whose + "choose targets one by one, not in spans");
  command.flag(
      "--causal-blocks", options.causal_blocks,
      whose + "each block of --perm-size has its own permutation and reads all earlier blocks");
}

void add_prefix(cli::Command& command, PrefixChoice& options, const std::string& whose) {
  command.option("--source", "LOW:HIGH", options.source,
                 whose + "share of the sequence that is the source, drawn between LOW and HIGH");
  command.option(
      "--mix", "B:S:L:R", options.mix,
      whose +
          "weights of the tasks: masked tokens, source to target, left to right, right to left");
}

records::PrefixOptions prefix_of(const PrefixChoice& options) {
  const std::vector<double> source = parse_shares("source", options.source, 1, 2);
  const std::vector<double> mix = parse_shares("mix", options.mix, 4, 4);
  return {.low = source.front(), .high = source.back(), .mix = {mix[0], mix[1], mix[2], mix[3]}};
}

void add_drop(cli::Command& command, DropChoice& options, const DropHelp& help) {
  command.option("--drop", "R", options.rate, cli::AllowedRange{0, 0.99}, help.rate);
  command.option("--min-keep", "N", options.min_keep, help.min_keep);
  add_renumber(command, options.renumber, "--drop ");
}

void check_drop(const DropChoice& options, bool min_keep_alone) {
  if (options.rate) return;
  const auto refuse = [](std::string_view name) {
    throw UsageError(fmt::format("{} has no effect without {}", field(name), field("drop")));
  };
  if (options.renumber) refuse("renumber");
  if (options.min_keep && !min_keep_alone) refuse("min_keep");
}

records::DropOptions drop_of(const DropChoice& options) {
  return {.rate = options.rate.value_or(0),
          .min_keep = options.min_keep.value_or(1),
          .renumber = options.renumber};
}

void add_min_keep(cli::Command& command, std::uint64_t& tokens) {
  command.option("--min-keep", "N", tokens, "keep at least N tokens");
}

void add_renumber(cli::Command& command, bool& renumber, const std::string& whose) {
  command.flag("--renumber", renumber,
               whose + "renumbers positions from 0 instead of keeping them (an ablation)");
}

}  // namespace masque::commands
