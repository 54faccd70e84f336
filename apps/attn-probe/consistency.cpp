// attn-probe consistency: how far unchanged tokens move when others are corrupted.
#include "evaluate/states/consistency.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/split.hpp"
#include "base/thread/parallel.hpp"
#include "commands.hpp"
#include "commands/number_list.hpp"
#include "commands/result_format.hpp"
#include "commands/sequences.hpp"
#include "commands/stack_option.hpp"
#include "evaluate/score/model_average.hpp"
#include "surgery/correction/correction_settings.hpp"

namespace masque::attn_probe {

namespace {

struct Options {
  commands::OpenModelOptions open;
  commands::SequenceOptions sequences;
  commands::StackOption stack;
  std::string rates = "0.15,0.3,0.4,0.6,0.8";
  std::optional<std::string> corruptions;
  std::optional<std::string> average;
  std::optional<std::string> corrected;
  std::optional<evaluate::PredictedTokens> predicted;
};

std::vector<evaluate::TokenNoise> parse_corruptions(const std::string& list) {
  const std::vector<std::string_view> names = split(list, ',');
  for (auto name = names.begin(); name != names.end(); ++name) {
    if (std::find(names.begin(), name, *name) != name)
      throw UsageError(fmt::format("--corruptions: found {} twice, expected once", escape(*name)));
  }
  return named_values("corruptions", std::span(names), evaluate::token_noise_names());
}

std::vector<double> rates_of(const Options& o) {
  std::vector<double> rates =
      commands::parse_numbers("rates", o.rates, 1e-6, 1, commands::Repeats::kRefused);
  // An average is over the masked tokens themselves.
  if (!o.average && std::ranges::find(rates, 1) != rates.end()) {
    throw UsageError(
        "--rates: found 1, at which no unchanged token is left to compare, expected lower rates");
  }
  return rates;
}

std::vector<Index> samples_of(const std::string& list) {
  std::vector<Index> samples;
  for (const double k : commands::parse_numbers("average", list, 1, 1e6)) {
    if (k != std::floor(k)) throw UsageError("--average: found a fraction, expected whole numbers");
    samples.push_back(static_cast<Index>(k));
  }
  std::sort(samples.begin(), samples.end());
  samples.erase(std::unique(samples.begin(), samples.end()), samples.end());
  return samples;
}

/// The mean, its standard error, and over how many lines and tokens.
void add_mean(const evaluate::RatioMean& mean, const commands::ResultFormat& format,
              std::vector<cli::Cell>& cells) {
  cells.push_back(format.cell(mean.mean()));
  cells.push_back(format.cell(mean.standard_error()));
}

commands::ResultFormat format_of(const Options& o, const commands::OpenedModel& opened) {
  return commands::ResultFormat::of(opened.model->precision(), o.open.digits);
}

std::uint64_t tokens_of(const evaluate::RatioMean& mean) {
  return static_cast<std::uint64_t>(std::llround(mean.counts));
}

template <class Work>
cli::ExitCode each(const Options& o, const commands::OpenedModel& opened,
                   const cli::Command& command, Work& work, cli::Session& session) {
  commands::SequenceWork add;
  add.use = [&](evaluate::Sequence&& sequence, std::string_view) {
    if (const auto problem = input_error_message([&] { work.add(sequence); }))
      throw InputError(fmt::format("sequence {}: {}", sequence.number, *problem));
  };
  return commands::each_sequence(o.sequences, opened, command, add, session);
}

void refuse_empty(bool measured, cli::ExitCode code, const Options& o, bool corrupted = false) {
  commands::refuse_empty(measured, code, o.sequences.stream, o.sequences.records,
                         corrupted ? "every token was corrupted, so that no unchanged one is left "
                                     "to compare: expected lower rates"
                                   : "no token was corrupted, expected more text or higher rates");
}

/// Refuses a table that was corrected for another rate than that of the average.
void check_corrected(const Options& o, double rate, cli::Session& session) {
  const std::vector<surgery::MlmCorrection> made = surgery::corrections_of(*o.corrected);
  if (made.empty()) {
    session.note(
        fmt::format("{}: has no mark of a correction, so its rate is not known", *o.corrected));
    return;
  }
  const surgery::MlmRates& rates = made.back().rates;
  if (made.size() > 1 || rates.rate != rate) {
    throw InputError(
        *o.corrected,
        fmt::format("was corrected for the rate {}{}, expected {}, as in --rates", rates.rate,
                    made.size() > 1 ? fmt::format(" ({} times)", made.size()) : "", rate));
  }
  if (rates == surgery::MlmRates{.rate = rate}) return;
  session.note(
      fmt::format("{}: was corrected for mask={} keep={} random={}, but the average masks "
                  "as BERT does",
                  *o.corrected, rates.mask, rates.keep, rates.random));
}

void print_consistency(const std::vector<evaluate::ConsistencyRow>& rows,
                       const commands::ResultFormat& format, const Options& o,
                       cli::Session& session) {
  cli::Table table(session, o.open.common,
                   {"corruption", "rate", "lines", "tokens", "distance", "distance_se", "cosine",
                    "cosine_se", "kl", "kl_se", "total_variation", "total_variation_se"});
  for (const evaluate::ConsistencyRow& row : rows) {
    std::vector<cli::Cell> cells = {name_in(evaluate::token_noise_names(), row.corruption),
                                    row.rate, row.distance.lines, tokens_of(row.distance)};
    for (const auto* mean : {&row.distance, &row.cosine, &row.divergence, &row.total_variation})
      add_mean(*mean, format, cells);
    table.row(cells);
  }
  table.finish();
}

void print_average(const std::vector<evaluate::AverageRow>& rows,
                   const commands::ResultFormat& format, const Options& o, cli::Session& session) {
  cli::Table table(session, o.open.common,
                   {"rate", "samples", "lines", "tokens", "nll_raw", "nll_corrected", "nll_average",
                    "accuracy_raw", "accuracy_corrected", "accuracy_average", "kl_average_raw",
                    "kl_average_raw_se", "kl_average_corrected", "kl_average_corrected_se"});
  for (const evaluate::AverageRow& row : rows) {
    std::vector<cli::Cell> cells = {row.rate, row.samples, row.raw_loss.lines,
                                    tokens_of(row.raw_loss)};
    for (const auto* mean : {&row.raw_loss, &row.corrected_loss, &row.average_loss, &row.raw_hits,
                             &row.corrected_hits, &row.average_hits})
      cells.push_back(format.cell(mean->mean()));
    add_mean(row.from_raw, format, cells);
    add_mean(row.from_corrected, format, cells);
    table.row(cells);
  }
  table.finish();
}

cli::ExitCode run_average(const Options& o, evaluate::AverageRequest request,
                          const commands::OpenedModel& opened, const cli::Command& command,
                          cli::Session& session) {
  request.seed = o.open.common.seed;
  if (!opened.options.mask_token_id) {
    throw InputError(opened.path, "no mask token: give a tokenizer with one (--tokenizer)");
  }
  request.mask = *opened.options.mask_token_id;
  std::unique_ptr<model::Model> corrected;
  if (o.corrected) corrected = model::open_model(*o.corrected, opened.options);
  evaluate::ModelAverage average(*opened.model, corrected.get(), request);
  const cli::ExitCode code = each(o, opened, command, average, session);
  const auto has_tokens = [](const evaluate::AverageRow& row) { return row.raw_loss.counts > 0; };
  refuse_empty(std::ranges::any_of(average.rows(), has_tokens), code, o);
  print_average(average.rows(), format_of(o, opened), o, session);
  return code;
}

cli::ExitCode run(const Options& o, const cli::Command& command, cli::Session& session) {
  session.configure(o.open.common);
  commands::check_sequences(o.sequences, command);
  if (o.average && o.corruptions) {
    throw UsageError("--average cannot be combined with --corruptions: it masks as BERT does");
  }
  if ((o.corrected || o.predicted) && !o.average) {
    throw UsageError(fmt::format("--{} needs --average", o.corrected ? "corrected" : "predicted"));
  }
  if (o.corrected && rates_of(o).size() != 1) {
    throw UsageError("--corrected was made for one rate: give only that rate as --rates");
  }
  evaluate::ConsistencyRequest request;
  request.corruptions = parse_corruptions(o.corruptions.value_or("mask,drop,random"));
  request.rates = rates_of(o);
  evaluate::AverageRequest average;
  average.rates = request.rates;
  average.batch_tokens = o.open.batch_tokens;
  if (o.predicted) average.predicted = *o.predicted;
  if (o.average) average.samples = samples_of(*o.average);
  const commands::OpenedModel opened =
      commands::open_stack(o.open, o.stack, !o.sequences.records, session);
  session.note(fmt::format("{}: {}", opened.path, opened.description()));
  if (o.corrected) check_corrected(o, request.rates.front(), session);
  if (o.average) return run_average(o, average, opened, command, session);
  request.mask = opened.options.mask_token_id;
  request.seed = o.open.common.seed;
  request.batch_tokens = o.open.batch_tokens;
  evaluate::Consistency consistency(*opened.model, request);
  const cli::ExitCode code = each(o, opened, command, consistency, session);
  const auto has_tokens = [](const evaluate::ConsistencyRow& row) {
    return row.distance.counts > 0;
  };
  const auto has_corrupted = [](const evaluate::ConsistencyRow& row) {
    return row.whole_lines > 0;
  };
  refuse_empty(std::ranges::any_of(consistency.rows(), has_tokens), code, o,
               std::ranges::any_of(consistency.rows(), has_corrupted));
  print_consistency(consistency.rows(), format_of(o, opened), o, session);
  return code;
}

}  // namespace

void declare_consistency(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand(
      "consistency",
      "measures how far states and predictions move when other tokens are masked or dropped");
  c.example("attn-probe consistency bert-base-uncased/ < text",
            "by rate, for masked, dropped and randomly replaced tokens");
  c.example(
      "attn-probe consistency bert/ --average 1,4,16 --rates 0.15 --corrected fixed/ < text",
      "compares the model, its average over random masks, and the model corrected by embed-fix");
  commands::add_open_options(c, o->open);
  commands::add_batch_tokens(c, o->open);
  // Targets are predicted from left to right, whatever is masked.
  o->stack.stacks = commands::stack_names().first(1);
  commands::add_stack(c, o->stack);
  commands::add_sequences(c, o->sequences);
  c.option("--rates", "LIST", o->rates, "shares of the tokens to corrupt");
  c.option("--corruptions", "LIST", o->corruptions,
           "kinds of corruption: mask, drop, random, none [mask,drop,random]");
  c.option("--average", "LIST", o->average,
           "instead, average predictions over K random masks (80 % [MASK], 10 % random, 10 % "
           "kept), for each K in LIST, at a quarter of the tokens");
  c.option("--corrected", "MODEL", o->corrected,
           "with --average: the model that embed-fix mlm-correct wrote");
  c.choice("--predicted", o->predicted, evaluate::predicted_token_names(),
           "with --average: what happens to the tokens that are predicted; visible: never masked; "
           "masked: always [MASK]; corrupted: as the others in the average, visible to the models "
           "that are compared [visible]");
  commands::add_digits(c, o->open.digits);
  cli::add_seed(c, o->open.common);
  cli::add_table(c, o->open.common);
  c.action([o, &c](cli::Session& session) { return run(*o, c, session); });
}

}  // namespace masque::attn_probe
