// The request and the report of every change of a checkpoint.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/file/in_place.hpp"
#include "store/tensorflow/tf_plan.hpp"
#include "surgery/edit/checkpoint_edit.hpp"
#include "surgery/rows/embedding_table.hpp"
#include "surgery/rows/token_names.hpp"

namespace masque::surgery {

/// What the requests of all changes of a checkpoint have in common.
struct EditRequest {
  std::optional<std::string> tensor;  ///< the table; absent: found by the family's names
  bool dry_run = false;               ///< everything but writing
  bool in_place = false;              ///< changes the input itself
  double wait_seconds = 0;            ///< in place: for other processes that change it
  store::WriteOptions write;  ///< in place only `threads` and `progress`; `input` is ignored
};

/// What a change of a checkpoint did, or would do with dry_run.
struct EditReport {
  std::string family;                ///< empty if unknown
  std::vector<std::string> changed;  ///< tensors with new bytes, sorted
  std::vector<std::string> added;    ///< tensors, in the order in which they were added
  std::vector<std::string> removed;  ///< tensors
  std::vector<std::string> files;    ///< of the folder, with another text, sorted
  std::vector<std::string> notes;    ///< for people: what was decided and why
};

/// A checkpoint that is about to be changed. Not movable: its parts point into each other.
struct EditedCheckpoint {
  /// Opens the checkpoint at `path`. Locks the files first if `request` says that they are to be
  /// changed in place. Throws InputError as lock_checkpoint(), open_checkpoint(), find_config() and
  /// CheckpointEdit, Interrupted while it waits for the lock.
  EditedCheckpoint(const std::string& path, const EditRequest& request)
      : locked(request.in_place && !request.dry_run
                   ? std::optional(store::lock_checkpoint(path, request.wait_seconds))
                   : std::nullopt),
        checkpoint(store::open_checkpoint(path)),
        config(store::find_config(checkpoint)),
        edit(checkpoint) {}
  EditedCheckpoint(const EditedCheckpoint&) = delete;
  EditedCheckpoint& operator=(const EditedCheckpoint&) = delete;

  std::optional<LockedFiles> locked;         ///< for a change in place that is no dry run
  store::Checkpoint checkpoint;              ///< as it is before the change
  std::optional<store::ModelConfig> config;  ///< of the checkpoint; absent if it has none
  CheckpointEdit edit;                       ///< of `checkpoint`, empty at first
};

/// Writes the edit of `edited` to `out` or in place, or with dry_run only computes it, as `request`
/// says. Sets the changed and added tensors and the files of `report`, and adds notes; `removed`
/// and `family` are the caller's. To be called once. Throws UsageError and InputError as write_edit
/// and write_in_place.
void finish_edit(EditedCheckpoint& edited, const std::string& out, const EditRequest& request,
                 EditReport& report);

}  // namespace masque::surgery
