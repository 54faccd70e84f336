// Results of a run of lengths on disk, a file for each arm and seed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "length/request.hpp"

namespace masque::length {

/// FOLDER/cells, and FOLDER/models. Files are written whole or not at all. Several processes may
/// work in one folder.
class LengthStore {
 public:
  /// Makes `folder` if it does not exist. Throws InputError if it only contains other things.
  explicit LengthStore(std::string folder);

  /// Returns the rows that were kept for `settings`, with `arm` and `seed` filled in; nothing if
  /// there are none. `lengths` are those of scored_lengths(). Throws InputError for a damaged file.
  std::optional<std::vector<LengthRow>> find(const LengthSubject::Settings& settings,
                                             const std::vector<Index>& lengths, std::size_t arm,
                                             std::uint64_t seed) const;
  /// Writes `rows` as the result of `settings`, over an older one. Throws InputError.
  void keep(const LengthSubject::Settings& settings, const std::vector<LengthRow>& rows) const;

  /// Returns the path of the checkpoint from which an interrupted cell with `settings` continues,
  /// whether it exists or not.
  std::string checkpoint(const LengthSubject::Settings& settings) const;
  /// Deletes that checkpoint of `settings` if it exists. Throws InputError if that fails.
  void drop_checkpoint(const LengthSubject::Settings& settings) const;
  /// Returns the folder of a cell's model; makes FOLDER/models if there is none. Its name has the
  /// position and normalizer of `design` and `seed` in readable form, and 8 digits of the digest of
  /// `settings`.
  std::string model(const LengthSubject::Settings& settings, const train::DesignRecipe& design,
                    std::uint64_t seed) const;

  /// Returns the steps that were kept for `request`, the digest of a request with a budget; nothing
  /// if there are none. Throws InputError for a damaged file.
  std::optional<std::int64_t> steps(const std::string& request) const;
  /// Keeps `steps` as the number of training steps of `request`, a digest as in steps().
  void keep_steps(const std::string& request, std::int64_t steps) const;

 private:
  std::string folder_;
};

/// Whether the rows of these `settings` have a column for fine-tuning.
bool has_finetuning(const LengthSubject::Settings& settings);

/// Returns what is wrong with the `rows` of one cell with these `settings`: "no row for length 16",
/// "accuracy 1.4 at length 8"; nothing if there is one for each window and each of `lengths`, and
/// for each length of fine-tuning, in the order in which they are scored.
std::optional<std::string> row_problem(const LengthSubject::Settings& settings,
                                       const std::vector<Index>& lengths,
                                       const std::vector<LengthRow>& rows);
/// Returns the lengths at which a cell with these `settings` was scored before fine-tuning: all, or
/// where position_count() limits them those of `rows` and all that are shorter. Throws UsageError
/// for positions that do not exist.
std::vector<Index> lengths_before_finetuning(const LengthSubject::Settings& settings,
                                             const std::vector<LengthRow>& rows);

/// Returns the XXH3 hash of the names and values in `settings`, in hexadecimal digits.
std::string settings_digest(const LengthSubject::Settings& settings);

}  // namespace masque::length
