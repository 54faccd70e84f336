// Sums of a part of a corpus as JSON lines, and back.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "commands/shard_set.hpp"
#include "probe/attention/attention_totals.hpp"
#include "stats_output.hpp"

namespace masque::attn_probe {

/// A line of sizes and provenance, one of each state, one of each head with its sums and those of
/// its pairs.
std::string part_json(const probe::AttentionTotals& totals, const std::string& shard,
                      const Provenance& provenance);

/// Adds parts that part_json wrote. Throws InputError for other lines, for parts of another
/// provenance, and for a shard, state or head that appears twice.
class StatsMerger {
 public:
  /// `path` names the text in messages.
  void add(std::string_view text, const std::string& path);
  /// Throws InputError if nothing was added.
  const probe::AttentionTotals& totals() const;
  const Provenance& provenance() const { return provenance_; }

 private:
  void add_line(const JsonValue& root);
  void finish_part(const std::string& path);

  probe::AttentionTotals totals_;
  probe::AttentionTotals part_;
  std::size_t lines_missing_ = 0;  ///< of part_
  std::vector<bool> states_seen_;  ///< of part_
  std::vector<bool> heads_seen_;
  commands::ShardSet shards_;
  bool any_ = false;
  Provenance provenance_;
};

}  // namespace masque::attn_probe
