#include "vocabulary_command.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/string/split.hpp"
#include "cli/shared_options.hpp"
#include "shared_options.hpp"
#include "surgery/rows/row_init.hpp"

namespace masque::embed_fix {

namespace {

constexpr std::uint64_t kMostListBytes = 256 << 20;

/// Ids, tokens and norms of the new rows, each as one list; rows without token are the last ones.
void add_new_rows(cli::Report& out, const std::vector<surgery::NewRow>& rows) {
  std::vector<cli::Cell> ids;
  std::vector<std::string> tokens;
  std::vector<cli::Cell> norms;
  ids.reserve(rows.size());
  tokens.reserve(rows.size());
  norms.reserve(rows.size());
  for (const surgery::NewRow& row : rows) {
    ids.emplace_back(row.id);
    if (!row.token.empty()) tokens.push_back(row.token);
    norms.emplace_back(row.norm);
  }
  if (rows.empty()) return;
  out.add("new_ids", cli::list_cell(ids));
  if (!tokens.empty()) out.add("new_tokens", cli::list_cell(tokens));
  out.add("new_norms", cli::list_cell(norms));
}

cli::Report report_of(const surgery::VocabularyReport& r) {
  cli::Report out;
  out.add("tensor", r.tensor);
  out.add("dtype", dtype_name(r.dtype));
  out.add("width", r.width);
  out.add("rows_before", r.rows_before);
  out.add("rows_after", r.rows_after);
  out.add("tokens_before", r.tokens_before);
  out.add("tokens_after", r.tokens_after);
  out.add("rows_gone", r.rows_gone);
  out.add("rows_new", r.new_rows.size() + r.copied_rows);
  add_new_rows(out, r.new_rows);
  out.add("changed_tensors", cli::list_cell(r.changed_tensors));
  out.add("edited_files", cli::list_cell(r.edited_files));
  if (r.verified) add_verified(out, *r.verified);
  return out;
}

std::string init_help() {
  std::string text = "new rows: ";
  for (const surgery::RowInit& init : surgery::row_inits()) {
    text += fmt::format("{}{} ({})", text.ends_with(' ') ? "" : "; ", spelling(init), init.help);
  }
  return text;
}

}  // namespace

void declare_vocabulary_options(cli::Command& command, VocabularyOptions& options,
                                NewRowsOption rows) {
  surgery::VocabularyRequest& r = options.request;
  cli::add_checkpoint(command, options.in);
  add_output(command, options.out);
  if (rows == NewRowsOption::kInit) {
    command.option("--init", "HOW", r.init, init_help());
    add_seed(command, options.common);
  }
  add_tensor(command, r.tensor, "the input table");
  command.flag("-n,--dry-run", r.dry_run, "reports what would change and writes nothing");
  add_verify(command, r.verify);
  commands::add_write_flags(command, options.write);
  add_report_options(command, options.common);
}

cli::ExitCode run_vocabulary(VocabularyOptions& options, cli::Session& session,
                             const surgery::VocabularyPlan& plan) {
  session.configure(options.common);
  surgery::VocabularyRequest& request = options.request;
  if (!options.out && !request.dry_run)
    throw UsageError("no -o OUTPUT, expected one (or --dry-run)");
  request.seed = options.common.seed;
  request.write = commands::write_options(options.write, options.common, session);
  const surgery::VocabularyReport report =
      surgery::change_vocabulary(options.in, options.out.value_or(""), plan, request);
  for (const std::string& note : report.notes) session.note(note);
  session.detail(fmt::format("family: {}", report.family.empty() ? "unknown" : report.family));
  session.detail_time();
  report_of(report).print(session, options.common);
  return cli::ExitCode::kDone;
}

void declare_list(cli::Command& command, surgery::TokenList& list, const std::string& help) {
  command.arguments("LIST", list.entries, help + "; @FILE: the lines of a file (@-: stdin)");
  command.choice("--as", list.as,
                 {{"auto", surgery::TokenList::As::kAuto},
                  {"ids", surgery::TokenList::As::kIds},
                  {"tokens", surgery::TokenList::As::kTokens}},
                 "how to read LIST; auto: as ids if all entries are whole numbers");
}

std::vector<std::string> read_list(const std::vector<std::string>& arguments,
                                   const VocabularyOptions& options, cli::Session& session) {
  session.configure(options.common);
  std::vector<std::string> entries;
  for (const std::string& argument : arguments) {
    if (argument.size() < 2 || argument.front() != '@') {
      std::error_code none;
      if (std::filesystem::is_regular_file(argument, none)) {
        session.note(fmt::format(
            "'{0}' is read as a token or id; use '@{0}' for the lines of that file", argument));
      }
      entries.push_back(argument);
      continue;
    }
    const std::string text = read_text(argument.substr(1), kMostListBytes);
    for_each_line(text, [&](std::string_view line) {
      line = without_return(line);
      if (!line.empty()) entries.emplace_back(line);
    });
  }
  return entries;
}

}  // namespace masque::embed_fix
