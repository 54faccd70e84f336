// Results over many lines: how they are printed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "commands/open_model.hpp"
#include "commands/part_contents.hpp"
#include "commands/result_format.hpp"
#include "evaluate/score/classification.hpp"
#include "evaluate/score/minimal_pairs.hpp"
#include "evaluate/score/perplexity.hpp"

namespace masque::lm_score {

/// Says where a number comes from: members of a JSON object without the braces. Parts with another
/// text are not added to it.
using Provenance = std::string;

/// `provenance` after the members by which merge knows the parts and what they have read: those of
/// part_members() for the `shard` of `input`, scored by `opened`; without a `shard` as it is.
Provenance with_shard(Provenance provenance, const std::optional<std::string>& shard,
                      const commands::OpenedModel& opened, const commands::InputPart& input);

/// A row a group, with Wilson's interval of 95 %.
void print_pairs(const evaluate::PairTally& tally, const Provenance& provenance,
                 const cli::CommonOptions& common, cli::Session& session);

/// A row a group, with the accuracy of both models and McNemar's exact test. `against` is the
/// provenance of the second model.
void print_comparison(const evaluate::PairComparison& comparison, const Provenance& provenance,
                      const Provenance& against, const cli::CommonOptions& common,
                      cli::Session& session);

/// The TSV form has `policy` and so on as lines of their own.
void print_ppl(const evaluate::Perplexity& perplexity, const Provenance& provenance,
               const commands::ResultFormat& number, const cli::CommonOptions& common,
               cli::Session& session);

/// Gold scores of pairs of sentences and the cosines of their vectors.
struct Similarities {
  std::string file;
  std::vector<double> gold;
  std::vector<double> cosines;
};

/// A row a file and, if there are several, one of all. With `keep_pairs` the JSON lines hold every
/// pair and no row of all: what merge needs. Otherwise throws InputError, after the rows are
/// printed, for a file without a correlation: of fewer than two pairs, or equal scores or cosines.
void print_sim(const std::vector<Similarities>& files, const Provenance& provenance,
               bool keep_pairs, const commands::ResultFormat& number,
               const cli::CommonOptions& common, cli::Session& session);

/// Labels, and how often each was chosen for each.
struct Choices {
  std::vector<std::string> names;  ///< at least two
  evaluate::Confusion confusion;
};

/// One row: accuracy with Wilson's interval of 95 %, macro F1, Matthews' correlation.
void print_choices(const Choices& choices, const Provenance& provenance,
                   const cli::CommonOptions& common, cli::Session& session);

}  // namespace masque::lm_score
