// The request and the report of every change of a checkpoint.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/in_place.hpp"
#include "store/tensorflow/tf_plan.hpp"
#include "surgery/edit/checkpoint_edit.hpp"
#include "surgery/rows/embedding_table.hpp"
#include "surgery/rows/token_names.hpp"

namespace masque::surgery {

struct EditRequest {
  std::optional<std::string> tensor;  ///< the table; absent: found by the family's names
  bool dry_run = false;               ///< everything but writing
  bool in_place = false;              ///< changes the input itself
  double wait_seconds = 0;            ///< in place: for other processes that change it
  store::WriteOptions write;
};

struct EditReport {
  std::string family;                ///< empty if unknown
  std::vector<std::string> changed;  ///< tensors
  std::vector<std::string> added;
  std::vector<std::string> removed;
  std::vector<std::string> files;  ///< of the folder, with another text
  std::vector<std::string> notes;  ///< for people: what was decided and why
};

/// A checkpoint that is about to be changed. Not movable: its parts point into each other.
struct EditedCheckpoint {
  /// Locks the files first if they are to be changed in place.
  EditedCheckpoint(const std::string& path, const EditRequest& request)
      : locked(request.in_place && !request.dry_run
                   ? std::optional(store::lock_checkpoint(path, request.wait_seconds))
                   : std::nullopt),
        checkpoint(store::open_checkpoint(path)),
        config(store::find_config(checkpoint)),
        edit(checkpoint) {}
  EditedCheckpoint(const EditedCheckpoint&) = delete;
  EditedCheckpoint& operator=(const EditedCheckpoint&) = delete;

  std::optional<LockedFiles> locked;
  store::Checkpoint checkpoint;
  std::optional<store::ModelConfig> config;
  CheckpointEdit edit;
};

/// Writes the edit to `out` or in place, or with dry_run only computes it. Fills in the report:
/// changed and added tensors, files and notes. Throws UsageError and InputError as write_edit and
/// write_in_place.
void finish_edit(EditedCheckpoint& edited, const std::string& out, const EditRequest& request,
                 EditReport& report);

}  // namespace masque::surgery
