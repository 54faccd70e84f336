#include "surgery/edit/edit_report.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "surgery/edit/checkpoint_edit.hpp"
#include "surgery/edit/edit_in_place.hpp"
#include "surgery/rows/new_rows.hpp"

namespace masque::surgery {

namespace {

/// What a dry run can find out.
void try_edit(const CheckpointEdit& edit, const EditRequest& request) {
  if (request.in_place) {
    for (const auto& reason : {edit.against_in_place(), edit.against_shared_files()}) {
      if (reason) throw InputError(edit.checkpoint().path(), *reason);
    }
  }
  for (const std::string& name : edit.replaced()) {
    const store::OutputTensor& tensor = *edit.replacement(name);
    try_source(tensor.source, byte_count(tensor.info.dtype, tensor.info.shape).value(),
               request.write.threads);
  }
}

}  // namespace

void finish_edit(EditedCheckpoint& edited, const std::string& out, const EditRequest& request,
                 EditReport& report) {
  CheckpointEdit& edit = edited.edit;
  report.changed = edit.replaced();
  report.added = edit.added();
  report.files = edit.edited_files();
  const auto& seen = edited.checkpoint.notes();
  report.notes.insert(report.notes.begin(), seen.begin(), seen.end());
  for (const std::string& name : stale_copies(edited.checkpoint)) {
    if (edit.drops(name)) continue;
    report.notes.push_back(stale_copy_note(name, request.in_place ? "stays" : "is copied"));
  }
  if (request.dry_run) {
    try_edit(edit, request);
    return;
  }
  if (!edited.locked) {
    for (std::string& note : write_edit(edit, out, request.write))
      report.notes.push_back(std::move(note));
    return;
  }
  for (const std::string& name : edited.locked->recovered()) {
    report.notes.push_back(
        fmt::format("'{}': an interrupted change was rolled back", escape(name)));
  }
  InPlaceOptions options;
  options.threads = request.write.threads;
  options.progress = request.write.progress;
  write_in_place(edit, *edited.locked, options);
}

}  // namespace masque::surgery
