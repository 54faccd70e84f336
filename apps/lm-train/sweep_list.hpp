// The list of the runs of a sweep, which `sweep` leaves in its folder for `collect`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace masque::lm_train {

/// The name of the list in the folder of a sweep.
constexpr const char* kSweepList = "sweep.tsv";

/// A run of a sweep: a value for each option that varies, and a seed.
struct SweepCell {
  std::string name;                 ///< of its folder, in that of the sweep
  std::vector<std::string> values;  ///< as many as SweepList::keys
  std::uint64_t seed = 0;           ///< --seed
};

/// The runs of a sweep.
struct SweepList {
  std::vector<std::string> keys;  ///< the options that vary, as in an experiment file
  std::vector<SweepCell> cells;   ///< with different names
};

/// The name of a run's folder: "learning-rate=0.001_position=rope_seed=3", with - for what file
/// names should not have. Throws UsageError for a name that is too long.
std::string cell_name(const std::vector<std::string>& keys, const std::vector<std::string>& values,
                      std::uint64_t seed);

/// Makes the folder, and writes `list` there, over the list of a smaller sweep. Throws InputError
/// for a folder with other things, and for the list of a sweep with other runs.
void write_list(const std::string& folder, const SweepList& list);

/// Reads it again. Throws InputError for a folder without a list, for what no sweep wrote, and for
/// a list that was changed since.
SweepList read_list(const std::string& folder);

/// The list in `text`, the content of the file `path`, with its digest. Throws InputError.
SweepList parse_list(std::string_view text, const std::string& path);

/// `list` as the content of its file, but for the last line, its digest. Throws Interrupted.
std::string list_text(const SweepList& list);

}  // namespace masque::lm_train
