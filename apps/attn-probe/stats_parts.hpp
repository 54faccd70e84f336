// Sums of a part of a corpus as JSON lines, and back.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.hpp"
#include "base/json/json_writer.hpp"
#include "commands/provenance.hpp"
#include "commands/shard_set.hpp"
#include "evaluate/attention/attention_totals.hpp"
#include "stats_output.hpp"

namespace masque::attn_probe {

/// A line of sizes, `part` (of part_members()) and provenance, one of each state, one of each head
/// with its sums, those of `tokens` and those of its pairs.
std::string part_json(const evaluate::AttentionTotals& totals, std::string_view part,
                      const Provenance& provenance, const std::vector<std::string>& tokens);

/// Writes the members "token_1", "token_2" … of a provenance: the measured tokens.
void add_tokens(const std::vector<std::string>& tokens, JsonWriter& json);

/// Adds parts that part_json wrote. Throws InputError for other lines, for parts of another
/// provenance, and for a shard, state or head that appears twice.
class StatsMerger {
 public:
  /// `path` names the text in messages.
  void add(std::string_view text, const std::string& path);
  /// Throws InputError if nothing was added.
  const evaluate::AttentionTotals& totals() const;
  const commands::ProvenanceMembers& provenance() const { return provenance_; }
  /// Lines that were left out of the parts.
  std::uint64_t left_out() const { return left_out_; }
  /// The tokens that the parts have measured.
  const std::vector<std::string>& tokens() const { return tokens_; }

 private:
  void add_line(const JsonValue& root);
  void finish_part(const std::string& path);

  evaluate::AttentionTotals totals_;
  evaluate::AttentionTotals part_;
  std::size_t lines_missing_ = 0;  ///< of part_
  std::vector<bool> states_seen_;  ///< of part_
  std::vector<bool> heads_seen_;
  commands::ShardSet shards_;
  bool any_ = false;
  std::uint64_t left_out_ = 0;
  commands::ProvenanceMembers provenance_;
  std::vector<std::string> tokens_;
};

}  // namespace masque::attn_probe
