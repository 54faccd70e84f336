// embed-fix resize: more or fewer rows without token.
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json.hpp"
#include "commands.hpp"
#include "shared_options.hpp"
#include "vocabulary_command.hpp"

namespace masque::embed_fix {

namespace {

struct Options : VocabularyOptions {
  std::string rows;
  std::uint64_t multiple = 1;
};

cli::ExitCode run(Options& o, cli::Session& session) {
  const auto rows = parse_unsigned(o.rows);
  if (!rows)
    throw UsageError(fmt::format("N: found '{}', expected a whole number", escape(o.rows)));
  return run_vocabulary(o, session, [&](const surgery::VocabularyState& state) {
    return surgery::plan_resize(state, *rows, o.multiple);
  });
}

}  // namespace

void declare_resize(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c =
      tool.subcommand("resize", "adds or removes rows without a token at the end of the table");
  c.example("embed-fix resize bert-base/ 30522 --multiple 64 -o padded/", "pads to 30528 rows");
  declare_vocabulary_options(c, *o, NewRowsOption::kInit);
  c.argument("N", o->rows, "number of rows");
  add_multiple(c, o->multiple, "rounds N");
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::embed_fix
