// The file of --timing: what each step cost.
#pragma once

#include <optional>
#include <string>

#include "base/file/scratch_file.hpp"
#include "cli/command.hpp"
#include "train/run/trainer.hpp"

namespace masque::lm_train {

/// Adds --timing, which stands in `file`.
void add_timing(cli::Command& command, std::optional<std::string>& file);

/// Throws UsageError if `file` is inside the folder `output`, there or not: the bytes of a model's
/// folder do not depend on time.
void check_timing(const std::optional<std::string>& file, const std::optional<std::string>& output);

/// A JSON line for each step. Without a file it writes nothing. For one thread.
class Timing {
 public:
  Timing() = default;
  /// Opens `file`, if there is one; `goes_on`: appends to what is there. Throws InputError.
  Timing(const std::optional<std::string>& file, bool goes_on);

  /// Appends the line of a step. Throws InputError.
  void add(const train::StepReport& report);

 private:
  std::optional<AppendFile> file_;
};

}  // namespace masque::lm_train
