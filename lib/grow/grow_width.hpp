// A wider checkpoint with the same function, of any family and format.
#pragma once

#include <string>
#include <vector>

#include "grow/width_rules.hpp"
#include "store/checkpoint_writer.hpp"

namespace masque::grow {

struct WidthRequest {
  Index factor = 2;  ///< at least 2
  WidthRule rule = WidthRule::kEqual;
  std::uint64_t seed = 0;  ///< of kUnequal
  store::WriteOptions write;
};

struct WidthReport {
  model::Design before, after;
  std::uint64_t grown = 0;  ///< tensors with another shape
  std::uint64_t kept = 0;   ///< tensors as they were
  /// Whether the stored numbers are those of the rule: factors are powers of two and shares equal.
  bool exact = false;
  std::vector<std::string> notes;
};

/// Reads the checkpoint `in` (a folder with config.json) and writes `out`: the same tensors, names,
/// types and format, with the sizes of config.json times `factor`. Numbers are computed in double
/// and rounded once. Tensors that no part of the model uses grow where their shape says how (a
/// pooler, a classifier), else they are left out, with a note. Memory: a few rows for each thread.
/// Throws UsageError and InputError for what cannot grow: as wider_design, a family whose
/// config.json cannot say the wider design, and as store::write_checkpoint_folder.
WidthReport grow_width(const std::string& in, const std::string& out, const WidthRequest& request);

}  // namespace masque::grow
