// Results of parts of a text, as JSON lines, added up for merge.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "aggregates.hpp"
#include "base/json/json.hpp"
#include "commands/provenance.hpp"
#include "commands/shard_set.hpp"

namespace masque::lm_score {

/// Adds JSON lines of several runs of one command. Throws InputError for a line that is none, has
/// another provenance, or is a second one of its shard.
class Merger {
 public:
  /// `path` is what messages call the file.
  void add(std::string_view text, const std::string& path);
  /// Prints numbers with `digits`, or by default as a run of that precision does. Throws InputError
  /// if nothing was added, or not every shard was.
  void print(const std::optional<std::int64_t>& digits, const cli::CommonOptions& common,
             cli::Session& session) const;
  /// Lines that were left out of the parts.
  std::uint64_t left_out() const { return left_out_; }

 private:
  void add_line(const JsonValue& root);

  void add_shard(const JsonValue& root);
  void check_shards() const;
  /// The message about what all parts lack; nullptr: nothing.
  const char* missing() const;

  std::string command_;
  std::optional<bool> sharded_;                     ///< whether lines have a shard
  commands::ShardSet shards_;                       ///< of all lines
  std::map<std::string, commands::ShardSet> rows_;  ///< of each row, by what stands in it
  std::uint64_t left_out_ = 0;
  commands::ProvenanceMembers provenance_;
  evaluate::PairTally pairs_;
  evaluate::Perplexity perplexity_;
  std::vector<Similarities> files_;
  std::optional<Choices> choices_;
};

}  // namespace masque::lm_score
