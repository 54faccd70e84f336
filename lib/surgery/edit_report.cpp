#include "surgery/edit_report.hpp"

#include "surgery/new_rows.hpp"

namespace masque {

void finish_edit(CheckpointEdit& edit, const std::string& out, const EditRequest& request,
                 EditReport& report) {
  report.changed = edit.replaced();
  report.added = edit.added();
  report.files = edit.edited_files();
  const auto& seen = edit.checkpoint().notes();
  report.notes.insert(report.notes.begin(), seen.begin(), seen.end());
  if (!request.dry_run) {
    for (std::string& note : write_edit(edit, out, request.write))
      report.notes.push_back(std::move(note));
    return;
  }
  for (const std::string& name : report.changed) {
    const OutputTensor& tensor = *edit.replacement(name);
    try_source(tensor.source, byte_count(tensor.info.dtype, tensor.info.shape).value(),
               request.write.threads);
  }
}

}  // namespace masque
