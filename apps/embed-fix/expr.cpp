// embed-fix expr: arithmetic on rows of the input table.
#include <cmath>
#include <memory>

#include "base/json/json_writer.hpp"
#include "commands.hpp"
#include "edit_options.hpp"
#include "surgery/patch/patch_rows.hpp"

namespace masque::embed_fix {

namespace {

struct Options : EditOptions {
  std::vector<std::string> programs;
  surgery::PatchRequest request;
};

/// Six digits; a nan is written without a sign, which says nothing.
std::string six_digits(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{:.6g}", value);
}

/// "7 norm 1.25 to 0.5, cosine 0.9; …", an array of objects in JSON.
cli::Cell rows_cell(const std::vector<surgery::PatchedRow>& rows) {
  std::string text;
  std::string list;
  JsonWriter json(list);
  json.begin_array();
  for (const surgery::PatchedRow& row : rows) {
    const std::string name = row.token.empty() ? "" : " " + escape(row.token);
    text += fmt::format("{}{}{}: norm {} to {}, cosine {}", text.empty() ? "" : "; ", row.row, name,
                        six_digits(row.norm_before), six_digits(row.norm_after),
                        six_digits(row.cosine));
    json.begin_object().member("id", row.row).member("token", row.token);
    json.member("norm_before", row.norm_before).member("norm_after", row.norm_after);
    json.member("cosine", row.cosine).end_object();
  }
  json.end_array();
  return cli::Cell::raw(text, list);
}

cli::ExitCode run(Options& o, cli::Session& session) {
  const std::string out = settle(o, o.request, session);
  const surgery::PatchReport r = surgery::apply_expressions(o.in, out, o.programs, o.request);
  cli::Report report;
  report.add("tensor", r.tensor);
  report.add("rows", rows_cell(r.rows));
  finish(o, r, report, session);
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_expr(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c =
      tool.subcommand("expr", "computes rows of the input table by arithmetic on rows");
  c.example("embed-fix expr bert/ 'king = [man] + 0.5*[crown]' -o out/",
            "sets one row from two others; tokens are spelled as in the vocabulary");
  c.example("embed-fix expr bert/ '[MASK] = mean([the], [of]); #7 = unit([MASK])' -o out/",
            "uses special tokens, ids, and two assignments in order");
  add_checkpoint(c, *o);
  c.arguments("EXPRESSION", o->programs,
              "ROW = arithmetic (+ - * /) on rows and numbers, mean(..), sum(..), unit(.), "
              "norm(.); a row is [token], \"token\" or #id; ';' separates assignments");
  add_tied(c, o->request.tied);
  add_tensor(c, o->request, "the table");
  add_edit_options(c, *o, o->request);
  add_in_place(c, *o);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::embed_fix
