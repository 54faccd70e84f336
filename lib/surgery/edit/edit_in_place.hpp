// Making an edit in the checkpoint's own files.
#pragma once

#include <functional>
#include <optional>

#include "base/file/in_place.hpp"
#include "surgery/edit/checkpoint_edit.hpp"
#include "surgery/edit/verify_checkpoint.hpp"

namespace masque::surgery {

/// How write_in_place() works.
struct InPlaceOptions {
  int threads = 0;                   ///< ≤ 0: all processors
  store::ProgressFunction progress;  ///< computed bytes of those that change; may be empty
  /// Called when everything is computed and nothing has changed yet; if it throws, nothing changes.
  std::function<void()> computed;
  /// Reads everything back before the change is final.
  bool verify = false;
};

/// What a change in place did.
struct InPlaceResult {
  std::uint64_t bytes = 0;               ///< that were written over
  std::optional<VerifyResult> verified;  ///< with InPlaceOptions::verify
};

/// Applies `edit` to the files themselves, completely or not at all, see base/in_place, on the
/// threads that `options` gives. `locked` are the files of the edit's checkpoint, from
/// lock_checkpoint, locked before it was opened. New bytes wait in temporary files next to the
/// weights, so sources may read any of the old ones. Space: twice the bytes that change. Throws
/// InputError (against_in_place(); tensors that share their bytes with others or are not
/// contiguous; a format that does not support it; disk full …) and Interrupted; the checkpoint is
/// then unchanged.
InPlaceResult write_in_place(const CheckpointEdit& edit, const LockedFiles& locked,
                             const InPlaceOptions& options);

}  // namespace masque::surgery
