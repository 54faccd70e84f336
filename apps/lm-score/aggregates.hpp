// Results over many lines: how they are printed, and how parts of them are read again by merge.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "commands/result_format.hpp"
#include "commands/shard_set.hpp"
#include "probe/score/classification.hpp"
#include "probe/score/minimal_pairs.hpp"
#include "probe/score/perplexity.hpp"

namespace masque::lm_score {

/// Says where a number comes from: members of a JSON object without the braces. Parts with another
/// text are not added to it.
using Provenance = std::string;

/// `provenance` and the member `shard`, by which merge knows the parts; without a `shard` as it is.
Provenance with_shard(Provenance provenance, const std::optional<std::string>& shard);

/// A row a group, with Wilson's interval of 95 %.
void print_pairs(const probe::PairTally& tally, const Provenance& provenance,
                 const cli::CommonOptions& common, cli::Session& session);

/// A row a group, with the accuracy of both models and McNemar's exact test. `against` is the
/// provenance of the second model.
void print_comparison(const probe::PairComparison& comparison, const Provenance& provenance,
                      const Provenance& against, const cli::CommonOptions& common,
                      cli::Session& session);

/// The TSV form has `policy` and so on as lines of their own.
void print_ppl(const probe::Perplexity& perplexity, const Provenance& provenance,
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
  probe::Confusion confusion;
};

/// One row: accuracy with Wilson's interval of 95 %, macro F1, Matthews' correlation.
void print_choices(const Choices& choices, const Provenance& provenance,
                   const cli::CommonOptions& common, cli::Session& session);

/// Adds JSON lines of several runs of one command. Throws InputError for a line that is none, has
/// another provenance, or is a second one of its shard.
class Merger {
 public:
  /// `path` is what messages call the file.
  void add(std::string_view text, const std::string& path);
  /// Throws InputError if nothing was added, or not every shard was.
  void print(const commands::ResultFormat& number, const cli::CommonOptions& common,
             cli::Session& session) const;

 private:
  void add_line(const JsonValue& root);

  void add_shard(const JsonValue& root);
  void check_shards() const;

  std::string command_;
  std::optional<bool> sharded_;                     ///< whether lines have a shard
  commands::ShardSet shards_;                       ///< of all lines
  std::map<std::string, commands::ShardSet> rows_;  ///< of each row, by what stands in it
  Provenance provenance_;
  probe::PairTally pairs_;
  probe::Perplexity perplexity_;
  std::vector<Similarities> files_;
  std::optional<Choices> choices_;
};

}  // namespace masque::lm_score
