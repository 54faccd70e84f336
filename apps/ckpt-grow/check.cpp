// ckpt-grow check: whether two models have the same function on a text.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "commands.hpp"
#include "commands/open_model.hpp"
#include "commands/result_format.hpp"
#include "commands/text_stream.hpp"
#include "evaluate/score/length_policy.hpp"
#include "grow/compare_models.hpp"
#include "run_growth.hpp"

namespace masque::ckpt_grow {

namespace {

struct Options {
  commands::OpenModelOptions open;
  std::string second;
  commands::StreamOptions stream;
  double tolerance = 1e-9;
  std::optional<std::int64_t> max_length;
};

cli::ExitCode run(const Options& o, const cli::Command& command, cli::Session& session) {
  session.configure(o.open.common);
  cli::need_stream(command);
  const commands::OpenedModel first = commands::open_model(o.open, o.open.model, true, session);
  const commands::OpenedModel second = commands::open_model(o.open, o.second, false, session);
  grow::ModelComparison comparison({*first.model, first.mask_of}, {*second.model, second.mask_of});
  std::optional<Index> limit;
  for (const commands::OpenedModel* one : {&first, &second}) {
    const auto own = evaluate::token_limit(one->model->design(), o.max_length.value_or(0));
    if (own) limit = std::min(*own, limit.value_or(*own));
  }
  const bool has_segments = first.model->design().type_vocab_size > 1;
  commands::LineWork work;
  work.label = "comparing";
  work.use = [&](std::uint64_t /*id*/, std::string_view line) -> std::optional<std::string> {
    const text::Encoding encoding = first.tokenizer->encode(line, {.special = true});
    const std::vector<Index> segments(encoding.type_ids.begin(), encoding.type_ids.end());
    const std::vector<TokenId>& ids = encoding.ids;
    if (limit && std::ssize(ids) > *limit) return evaluate::too_long(std::ssize(ids), *limit);
    comparison.add(ids, has_segments ? segments : std::vector<Index>());
    return std::nullopt;
  };
  work.flush = [] {};
  const cli::ExitCode code = commands::run_lines(o.stream, command, work, session);
  const grow::ModelDifference& found = comparison.result();
  if (found.tokens == 0)
    throw InputError(input_name(o.stream.file), "no line with a token, expected a text");
  session.note(fmt::format("{} sequences, {} tokens, {}", found.sequences, found.tokens,
                           kernel::precision_name(first.model->precision())));
  DifferenceTable table(session, o.open.common);
  table.add(found, first.model->precision());
  table.finish();
  const bool same =
      found.logits.value_or(0) <= o.tolerance && found.states.value_or(0) <= o.tolerance;
  return code != cli::ExitCode::kDone || same ? code : cli::ExitCode::kFound;
}

}  // namespace

void declare_check(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  o->open.precision = kernel::Precision::kF64;
  cli::Command& c =
      tool.subcommand("check", "compares the logits and hidden states of two models on a text");
  c.example("ckpt-grow check bert-base-uncased/ wide/ < text",
            "in f64; exit code 1 if they differ");
  commands::add_open_options(c, o->open);
  c.argument("SECOND", o->second, "folder of the second model");
  c.option("--tolerance", "X", o->tolerance, cli::AllowedRange{0, 1e9},
           "largest difference of logits or states that counts as equal");
  c.option("--max-length", "N", o->max_length, cli::AllowedRange{1, 1e6},
           "maximum tokens of a line [the smaller of the models' maximum lengths]");
  commands::add_stream(c, o->stream);
  cli::add_table(c, o->open.common);
  c.action([o, &c](cli::Session& session) { return run(*o, c, session); });
}

}  // namespace masque::ckpt_grow
