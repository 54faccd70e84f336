// What the commands that write a changed checkpoint share.
#pragma once

#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json.hpp"
#include "cli/run_tool.hpp"
#include "cli/shared_options.hpp"
#include "commands/write_flags.hpp"
#include "shared_options.hpp"
#include "surgery/correction/correct_checkpoint.hpp"
#include "surgery/edit/edit_report.hpp"

namespace masque::embed_fix {

struct EditOptions {
  std::string in;
  std::optional<std::string> out;
  commands::WriteFlags write;
  InPlaceChoice in_place;
  bool may_be_in_place = false;  ///< the command has --in-place
  cli::CommonOptions common;
};

/// The value of an argument N. Throws UsageError if it is no number from 1 to 2^31.
inline std::uint64_t read_count(const std::string& text) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 31;
  const auto count = parse_unsigned(text);
  if (!count || *count == 0 || *count > kMost) {
    throw UsageError(
        fmt::format("N: found '{}', expected a number from 1 to {}", escape(text), kMost));
  }
  return *count;
}

inline cli::Cell shape_cell(const Shape& shape) {
  const std::string text = shape_text(shape);
  return cli::Cell::raw(text, text);
}

/// Declares --tied, for commands that change the input table.
inline void add_tied(cli::Command& c, surgery::TiedPolicy& tied) {
  c.choice("--tied", tied,
           {{"keep", surgery::TiedPolicy::kKeep},
            {"untie", surgery::TiedPolicy::kUntie},
            {"refuse", surgery::TiedPolicy::kRefuse}},
           "what to do with a tied output head: keep it tied (it changes too), untie it (it gets a "
           "copy of the old table) or refuse");
}

/// Declares CHECKPOINT.
inline void add_checkpoint(cli::Command& c, EditOptions& o) { cli::add_checkpoint(c, o.in); }

/// Declares --tensor.
inline void add_tensor(cli::Command& c, surgery::EditRequest& request, const std::string& table) {
  add_tensor(c, request.tensor, table);
}

/// Declares -o, --dry-run, --force and the common options.
inline void add_edit_options(cli::Command& c, EditOptions& o, surgery::EditRequest& request) {
  add_output(c, o.out);
  c.flag("-n,--dry-run", request.dry_run, "reports what would change and writes nothing");
  commands::add_write_flags(c, o.write);
  add_report_options(c, o.common);
}

/// Declares --in-place and --wait, for commands that keep the size of every tensor.
inline void add_in_place(cli::Command& c, EditOptions& o) {
  o.may_be_in_place = true;
  add_in_place(c, o.in_place);
}

/// Settles the request; returns the output's path. Throws UsageError if there is none.
inline std::string settle(const EditOptions& o, surgery::EditRequest& request,
                          cli::Session& session) {
  session.configure(o.common);
  if (!o.may_be_in_place && !o.out && !request.dry_run)
    throw UsageError("no -o OUTPUT, expected one (or --dry-run)");
  check_output(o.out, o.write.force, o.in_place, request.dry_run);
  request.in_place = o.in_place.in_place;
  request.wait_seconds = o.in_place.wait_seconds.value_or(0);
  request.write = commands::write_options(o.write, o.common, session);
  return o.out.value_or("");
}

/// Says the notes, adds what was changed to the report and prints it.
inline void finish(const EditOptions& o, const surgery::EditReport& edit, cli::Report& report,
                   cli::Session& session) {
  for (const std::string& note : edit.notes) session.note(note);
  session.detail(fmt::format("family: {}", edit.family.empty() ? "unknown" : edit.family));
  session.detail_time();
  report.add("changed", cli::list_cell(edit.changed));
  report.add("added", cli::list_cell(edit.added));
  report.add("removed", cli::list_cell(edit.removed));
  report.add("files", cli::list_cell(edit.files));
  report.print(session, o.common);
}

}  // namespace masque::embed_fix
