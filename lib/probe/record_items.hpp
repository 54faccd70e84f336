// Sequences of ids from JSON lines, as the engine takes them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "model/design.hpp"
#include "probe/dump.hpp"

namespace masque::probe {

struct RecordInput {
  std::string path;  ///< "-" is standard input
  std::string name;  ///< of it in messages
  std::optional<std::string> shard;
  std::uint64_t first_record = 0;
  std::uint64_t max_line = 64 << 20;
};

/// Calls use(item) for each line that is not empty, in order: `ids`, and `seg`, `pos` and `mask` if
/// it has them; its number is that of the line. Throws InputError that names the line, also for
/// what a model of this design cannot run.
void each_record_item(const RecordInput& input, const model::Design& design,
                      const std::function<void(DumpItem&&)>& use);

}  // namespace masque::probe
