// The parts of one run, whose outputs are merged.
#pragma once

#include <cstdint>
#include <set>
#include <string_view>

namespace masque::commands {

/// Shards I/N of one N. The outputs of all of them are those of the whole run.
class ShardSet {
 public:
  /// Adds `shard`, "I/N"; returns whether it is new. Throws InputError (message only) for text that
  /// is no shard, and for a shard of another number of shards.
  bool add(std::string_view shard);
  /// Throws InputError (message only) that names the first shard that is missing. Without any
  /// shard there is nothing to miss.
  void check_complete() const;

 private:
  std::uint64_t count_ = 0;
  std::set<std::uint64_t> present_;
};

}  // namespace masque::commands
