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
  /// Makes the folder if it does not exist. Throws InputError if it only contains other things.
  explicit LengthStore(std::string folder);

  /// The rows that were kept for these settings, with arm and seed. Throws InputError for a damaged
  /// file.
  std::optional<std::vector<LengthRow>> find(const LengthSubject::Settings& settings,
                                             std::size_t arm, std::uint64_t seed) const;
  void keep(const LengthSubject::Settings& settings, const std::vector<LengthRow>& rows) const;

  /// The checkpoint from which an interrupted cell continues.
  std::string checkpoint(const LengthSubject::Settings& settings) const;
  void drop_checkpoint(const LengthSubject::Settings& settings) const;
  /// The folder of a cell's model; FOLDER/models is made if there is none. Its name has the design
  /// and the seed in readable form, and a part of the settings' digest.
  std::string model(const LengthSubject::Settings& settings, const train::DesignRecipe& design,
                    std::uint64_t seed) const;

  /// The steps that were measured for a request, by its digest.
  std::optional<std::int64_t> steps(const std::string& request) const;
  void keep_steps(const std::string& request, std::int64_t steps) const;

 private:
  std::string folder_;
};

/// Whether the rows of these settings have a column for fine-tuning.
bool has_finetuning(const LengthSubject::Settings& settings);

/// XXH3 of names and values.
std::string settings_digest(const LengthSubject::Settings& settings);

}  // namespace masque::length
