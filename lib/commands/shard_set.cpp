#include "commands/shard_set.hpp"

#include <optional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/input/line_shard.hpp"
#include "base/thread/parallel.hpp"

namespace masque::commands {

bool ShardSet::add(std::string_view shard) {
  std::optional<Shard> part;
  if (usage_error_message([&] { part = parse_shard(shard); }))
    throw InputError(fmt::format("shard: found '{}', expected I/N as in 2/8", escape(shard)));
  if (count_ != 0 && part->count != count_) {
    throw InputError(fmt::format("shard {}/{}, expected one of {} as in the parts before",
                                 part->index, part->count, count_));
  }
  count_ = part->count;
  return present_.insert(part->index).second;
}

void ShardSet::check_complete() const {
  std::uint64_t expected = 1;
  for (const std::uint64_t index : present_) {
    if (index != expected) break;
    ++expected;
  }
  if (expected <= count_)
    throw InputError(fmt::format("shard {}/{} is missing, expected all shards", expected, count_));
}

}  // namespace masque::commands
