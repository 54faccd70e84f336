// attn-probe ablate: how much of the loss depends on the attention of each layer.
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/thread/parallel.hpp"
#include "commands.hpp"
#include "commands/number_list.hpp"
#include "commands/result_format.hpp"
#include "commands/scoring.hpp"
#include "commands/selection_options.hpp"
#include "commands/sequences.hpp"
#include "commands/stack_option.hpp"
#include "evaluate/attention/ablation.hpp"
#include "evaluate/score/length_policy.hpp"

namespace masque::attn_probe {

namespace {

struct Options {
  commands::OpenModelOptions open;
  commands::ScoringOptions scoring;
  commands::StreamOptions stream;
  commands::StackOption stack;
  std::optional<std::string> rates;
  std::optional<std::string> split;
  std::optional<std::uint64_t> seed;
};

constexpr const char* kSplit = "0.8:0.1:0.1";
/// Of --policy with --rates: a shortened text would be measured as another one.
constexpr const char* kPolicies = "error or skip";

const char* name_of(model::AttentionOverride attention) {
  switch (attention) {
    case model::AttentionOverride::kIntact: return "intact";
    case model::AttentionOverride::kZero: return "zero";
    case model::AttentionOverride::kMean: break;
  }
  return "mean";
}

/// The columns of a row in every table.
const std::vector<std::string> kColumns = {"layer", "attention", "lines", "tokens",
                                           "nll",   "nll_se",    "gap",   "gap_se"};

void add_cells(const evaluate::AblationRow& row, const commands::ResultFormat& format,
               std::vector<cli::Cell>& cells) {
  cells.emplace_back(row.layer ? std::to_string(*row.layer) : std::string("all"));
  cells.emplace_back(name_of(row.attention));
  cells.emplace_back(row.loss.lines);
  cells.emplace_back(static_cast<std::uint64_t>(std::llround(row.loss.counts)));
  for (const double x :
       {row.loss.mean(), row.loss.standard_error(), row.gap.mean(), row.gap.standard_error()})
    cells.push_back(format.cell(x));
}

std::array<double, 3> split_of(const std::string& list) {
  const std::vector<double> shares = commands::parse_shares("split", list, 3, 3);
  const double sum = shares[0] + shares[1] + shares[2];
  if (std::abs(sum - 1) > 1e-9)
    throw UsageError(fmt::format("--split: found shares that add up to {}, expected 1", sum));
  return {shares[0], shares[2], shares[1]};
}

void check_options(const Options& o) {
  const commands::ScoringOptions& s = o.scoring;
  if (!o.rates && (o.split || o.seed)) throw UsageError("--split and --seed need --rates");
  if (!o.rates) return;
  if (o.stack.chosen) throw UsageError("--rates cannot be combined with --stack");
  if (s.kind || s.max_length || s.begin.given() || s.no_special_in_text || s.draws) {
    throw UsageError(
        "--rates cannot be combined with --kind, --max-length, --bos, --no-bos, --draws and "
        "--no-special-in-text");
  }
  if (s.policy && !evaluate::refuses_long(evaluate::parse_length_policy(*s.policy, kPolicies)))
    throw UsageError(fmt::format("--policy {}: not supported with --rates, expected {}",
                                 escape(*s.policy), kPolicies));
}

cli::ExitCode run_scored(const Options& o, const commands::OpenedModel& opened,
                         const cli::Command& command, cli::Session& session) {
  const commands::Scoring scoring = commands::make_scoring(o.scoring, o.open, opened, session);
  if (scoring.options.kind == evaluate::ScoreKind::kMaskless)
    throw InputError(opened.path,
                     "this model gives one score per text: expected a model that predicts tokens");
  if (o.stack.pairs()) commands::check_targets(o.scoring, scoring);
  evaluate::Ablation ablation(*opened.model, scoring.options);
  commands::LineWork work;
  work.use = [&](std::uint64_t id, std::string_view line) -> std::optional<std::string> {
    evaluate::Sentence sentence;
    if (o.stack.pairs()) {
      auto problem = input_error_message(
          [&] { sentence = commands::encode_target_line(line, opened, scoring.sentence); });
      if (problem) return problem;
    } else {
      sentence = encode_sentence(*opened.tokenizer, line, scoring.sentence);
    }
    if (auto problem = ablation.length_problem(sentence)) return problem;
    ablation.add(id, sentence);
    return std::nullopt;
  };
  work.flush = [&] { ablation.flush(); };
  const cli::ExitCode code =
      commands::run_lines(commands::scored_stream(o.stream, scoring), command, work, session);
  commands::note_shortened(ablation.shortened(), session);
  const auto has_tokens = [](const evaluate::AblationRow& row) { return row.loss.counts > 0; };
  commands::refuse_empty(std::ranges::any_of(ablation.rows(), has_tokens), code, o.stream);
  const auto format = commands::ResultFormat::of(opened.model->precision(), o.open.digits);
  cli::Table table(session, o.open.common, kColumns);
  for (const evaluate::AblationRow& row : ablation.rows()) {
    std::vector<cli::Cell> cells;
    add_cells(row, format, cells);
    table.row(cells);
  }
  table.finish();
  return code;
}

cli::ExitCode run_masked(const Options& o, const evaluate::MaskedAblationRequest& request,
                         const commands::OpenedModel& opened, const cli::Command& command,
                         cli::Session& session) {
  evaluate::MaskedAblation ablation(*opened.model, request);
  session.note(fmt::format("{}: {}; split {}, seed {}", opened.path, opened.description(),
                           o.split.value_or(kSplit), request.seed));
  commands::SequenceOptions sequences;
  sequences.stream = o.stream;
  sequences.skip_empty = true;
  if (o.scoring.policy == "skip") sequences.stream.input.bad = cli::BadLines::kSkip;
  commands::SequenceWork work;
  work.use = [&](const evaluate::Sequence& sequence, std::string_view) { ablation.add(sequence); };
  work.flush = [&] { ablation.flush(); };
  const cli::ExitCode code = commands::each_sequence(sequences, opened, command, work, session);
  const auto has_tokens = [](const evaluate::MaskedAblationRow& row) {
    return row.ablation.loss.counts > 0;
  };
  commands::refuse_empty(std::ranges::any_of(ablation.rows(), has_tokens), code, o.stream,
                         std::nullopt, "no token was selected, expected more text or higher rates");
  const auto format = commands::ResultFormat::of(opened.model->precision(), o.open.digits);
  std::vector<std::string> columns = {"rate", "fate"};
  columns.insert(columns.end(), kColumns.begin(), kColumns.end());
  cli::Table table(session, o.open.common, columns);
  for (const evaluate::MaskedAblationRow& row : ablation.rows()) {
    std::vector<cli::Cell> cells = {row.rate, row.fate ? evaluate::fate_name(*row.fate) : "all"};
    add_cells(row.ablation, format, cells);
    table.row(cells);
  }
  table.finish();
  return code;
}

cli::ExitCode run(const Options& o, const cli::Command& command, cli::Session& session) {
  session.configure(o.open.common);
  check_options(o);
  evaluate::MaskedAblationRequest request;
  if (o.rates) {
    request.rates =
        commands::parse_numbers("rates", *o.rates, 1e-6, 1, commands::Repeats::kRefused);
    request.split = split_of(o.split.value_or(kSplit));
  }
  cli::need_stream(command);
  const commands::OpenedModel opened = commands::open_stack(o.open, o.stack, true, session);
  if (!o.rates) return run_scored(o, opened, command, session);
  request.mask = opened.tokenizer->roles().mask;
  request.seed = o.seed.value_or(0);
  request.batch_tokens = o.open.batch_tokens;
  return run_masked(o, request, opened, command, session);
}

}  // namespace

void declare_ablate(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand(
      "ablate", "loss with each layer's attention removed, made uniform, or unchanged");
  c.example("attn-probe ablate bert-base-uncased/ < text",
            "pseudo-log-likelihood: how the loss of hidden tokens depends on the attention of each "
            "layer");
  c.example("attn-probe ablate bert-base-uncased/ --rates 0.05,0.15,0.4,0.6,0.8 < text",
            "by masking rate, for masked, random and kept tokens: shows the residual shortcut");
  commands::add_open_options(c, o->open);
  commands::add_batch_tokens(c, o->open);
  // The encoder alone has no loss.
  o->stack.stacks = commands::stack_names().subspan(1, 1);
  commands::add_stack(c, o->stack);
  commands::add_scoring(c, o->scoring);
  c.option("--rates", "LIST", o->rates,
           "instead of scoring, corrupt these shares of the tokens and predict them");
  c.option("--split", "M:K:R", o->split,
           "with --rates: shares of the selected tokens that are masked, kept, and replaced by "
           "random tokens [0.8:0.1:0.1]");
  cli::add_seed(c, o->seed, "with --rates: seed of the random numbers");
  commands::add_digits(c, o->open.digits);
  commands::add_stream(c, o->stream, {.policy = false});
  cli::add_table(c, o->open.common);
  c.action([o, &c](cli::Session& session) { return run(*o, c, session); });
}

}  // namespace masque::attn_probe
