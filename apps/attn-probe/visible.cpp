// attn-probe visible: the loss by the number of visible tokens.
#include <algorithm>
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/thread/parallel.hpp"
#include "commands.hpp"
#include "commands/number_list.hpp"
#include "commands/open_model.hpp"
#include "commands/result_format.hpp"
#include "commands/sequences.hpp"
#include "evaluate/score/visible_context.hpp"

namespace masque::attn_probe {

namespace {

constexpr double kMostVisible = 1e6;

struct Options {
  commands::OpenModelOptions open;
  commands::SequenceOptions sequences;
  std::string visible = "0,1,2,4,8,16,32,64,128";
  std::int64_t draws = 1;
  std::optional<std::uint64_t> seed;
};

std::vector<Index> counts_of(const std::string& list) {
  std::vector<Index> counts;
  for (const double x :
       commands::parse_numbers("visible", list, 0, kMostVisible, commands::Repeats::kRefused)) {
    if (x != std::floor(x))
      throw UsageError(fmt::format("--visible: found {}, expected whole numbers of tokens", x));
    counts.push_back(static_cast<Index>(x));
  }
  return counts;
}

cli::ExitCode run(const Options& o, const cli::Command& command, cli::Session& session) {
  session.configure(o.open.common);
  evaluate::VisibleContextRequest request;
  request.visible = counts_of(o.visible);
  request.draws = o.draws;
  request.seed = o.seed.value_or(0);
  request.batch_tokens = o.open.batch_tokens;
  check_sequences(o.sequences, command);
  const commands::OpenedModel opened = commands::open_model(o.open, o.open.model, true, session);
  if (!opened.options.masks.empty() || opened.options.keys || opened.options.query) {
    throw UsageError(
        "--mask, --kv and --query: not supported, the visible tokens are drawn at random");
  }
  request.mask = opened.tokenizer->roles().mask;
  std::unique_ptr<evaluate::VisibleContext> context;
  if (const auto problem = input_error_message([&] {
        context =
            std::make_unique<evaluate::VisibleContext>(*opened.model, opened.options, request);
      }))
    throw InputError(opened.path, *problem);
  session.note(fmt::format("{}: {}; {} draws, seed {}", opened.path, opened.description(),
                           request.draws, request.seed));
  commands::SequenceWork work;
  work.use = [&](const evaluate::Sequence& sequence, std::string_view) {
    if (const auto problem = input_error_message([&] { context->add(sequence); }))
      throw InputError(fmt::format("sequence {}: {}", sequence.number, *problem));
  };
  work.flush = [&] { context->flush(); };
  const cli::ExitCode code = commands::each_sequence(o.sequences, opened, command, work, session);
  commands::refuse_empty(!context->rows().empty(), code, o.sequences.stream, o.sequences.records);
  const auto format = commands::ResultFormat::of(opened.model->precision(), o.open.digits);
  cli::Table table(session, o.open.common,
                   {"visible", "distance", "lines", "tokens", "nll", "nll_se"});
  for (const evaluate::VisibleContextRow& row : context->rows()) {
    table.row({static_cast<std::uint64_t>(row.visible), row.distance_text(), row.loss.lines,
               static_cast<std::uint64_t>(std::llround(row.loss.counts)),
               format.cell(row.loss.mean()), format.cell(row.loss.standard_error())});
  }
  table.finish();
  return code;
}

}  // namespace

void declare_visible(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand(
      "visible",
      "measures the loss by the number of visible tokens and the distance to the nearest");
  c.example("attn-probe visible bert-base-uncased/ < text",
            "loss in nats per token when 0, 1, 2, 4 … random tokens of the text are visible");
  c.example("attn-probe visible tta/ --visible 8,16 --draws 4 < text | grep all",
            "a T-TA, four random orders per text; compare with models of two streams");
  commands::add_open_options(c, o->open);
  commands::add_batch_tokens(c, o->open);
  c.option("--visible", "LIST", o->visible, "numbers of visible tokens");
  c.option("--draws", "K", o->draws, cli::AllowedRange{1, 1e6},
           "random orders of tokens drawn for each text");
  cli::add_seed(c, o->seed, "seed of the random orders");
  commands::add_digits(c, o->open.digits);
  commands::add_sequences(c, o->sequences, false);
  cli::add_table(c, o->open.common);
  c.action([o, &c](cli::Session& session) { return run(*o, c, session); });
}

}  // namespace masque::attn_probe
