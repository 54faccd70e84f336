// attn-probe consistency: how far unchanged tokens move when others are corrupted, or when another
// model of the same shape reads them.
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
#include "evaluate/score/score_leak.hpp"
#include "evaluate/score/token_distribution.hpp"
#include "evaluate/states/model_divergence.hpp"
#include "surgery/correction/correction_settings.hpp"

namespace masque::attn_probe {

namespace {

constexpr const char* kRates = "0.15,0.3,0.4,0.6,0.8";

struct Options {
  commands::OpenModelOptions open;
  commands::SequenceOptions sequences;
  commands::StackOption stack;
  std::optional<std::string> rates;
  std::optional<std::string> corruptions;
  std::optional<std::string> average;
  std::optional<std::string> corrected;
  std::optional<evaluate::PredictedTokens> predicted;
  std::optional<std::string> against;
  std::optional<std::string> what;
  std::optional<std::uint64_t> seed;
};

/// The values of `table` that the `list` of the option `field` names, each at most once.
template <class T>
std::vector<T> parse_names(const std::string& field, const std::string& list, NameTable<T> table) {
  const std::vector<std::string_view> names = split(list, ',');
  for (auto name = names.begin(); name != names.end(); ++name) {
    if (std::find(names.begin(), name, *name) != name)
      throw UsageError(fmt::format("--{}: found {} twice, expected once", field, escape(*name)));
  }
  return named_values(field, std::span(names), table);
}

std::vector<double> rates_of(const Options& o) {
  std::vector<double> rates = commands::parse_numbers("rates", o.rates.value_or(kRates), 1e-6, 1,
                                                      commands::Repeats::kRefused);
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
  request.seed = o.seed.value_or(0);
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

/// Refuses options of corrupted texts.
void check_against(const Options& o) {
  const std::pair<const char*, bool> others[] = {
      {"rates", o.rates.has_value()},         {"corruptions", o.corruptions.has_value()},
      {"average", o.average.has_value()},     {"corrected", o.corrected.has_value()},
      {"predicted", o.predicted.has_value()}, {"seed", o.seed.has_value()}};
  for (const auto& [name, given] : others) {
    if (given)
      throw UsageError(
          fmt::format("--against cannot be combined with --{}: both models read the "
                      "text as it is",
                      name));
  }
}

/// The texts of two models, which must have the same ids.
class SecondReader {
 public:
  SecondReader(const Options& o, const commands::OpenedModel& opened, cli::Session& session)
      : opened_(opened) {
    if (opened.tokenizer) how_ = commands::sentence_options(o.sequences, opened, session);
  }

  /// The `sequence` of `text` as the second model gets it. Throws InputError (message only) if its
  /// tokenizer gives other ids, and if it has too few positions.
  evaluate::Sequence read(const evaluate::Sequence& sequence, std::string_view text) const {
    evaluate::Sequence own = sequence;
    if (!opened_.tokenizer) {
      if (opened_.mask_of) own.mask = opened_.mask_of(own.ids);
    } else {
      evaluate::Sentence sentence = encode_sentence(*opened_.tokenizer, text, how_);
      // What --policy truncate left of it.
      const Index kept = sequence.size() - sentence.prefix - sentence.suffix;
      if (0 <= kept && kept < sentence.tokens()) sentence = evaluate::part_of(sentence, 0, kept);
      own = commands::sequence_of(std::move(sentence), sequence.number, opened_);
      if (own.ids != sequence.ids) refuse(sequence, own);
    }
    const Index longest = opened_.model->design().max_position_embeddings;
    if (longest > 0 && own.size() > longest)
      throw InputError(
          fmt::format("{}: {}", opened_.path, evaluate::too_long(own.size(), longest)));
    return own;
  }

 private:
  [[noreturn]] void refuse(const evaluate::Sequence& first, const evaluate::Sequence& own) const {
    const auto [a, b] = std::ranges::mismatch(first.ids, own.ids);
    const auto at = a - first.ids.begin();
    const auto id = [](const auto& ids, std::ptrdiff_t i) {
      return i < std::ssize(ids) ? fmt::format("{}", ids[static_cast<std::size_t>(i)])
                                 : std::string("no more");
    };
    throw InputError(fmt::format(
        "token {}: the tokenizer of {} gives {}, expected {}, as that of the first model; "
        "--tokenizer gives both the same",
        at, opened_.path, id(own.ids, at), id(first.ids, at)));
  }

  const commands::OpenedModel& opened_;
  evaluate::SentenceOptions how_;
};

void print_divergence(const std::vector<evaluate::DivergenceRow>& rows,
                      const commands::ResultFormat& format, const Options& o,
                      cli::Session& session) {
  cli::Table table(
      session, o.open.common,
      {"measure", "layer", "head", "texts", "tokens", "value", "low", "high", "worst"});
  const auto index = [](const std::optional<Index>& i) {
    return i ? cli::Cell(static_cast<std::uint64_t>(*i)) : cli::Cell::none();
  };
  const auto number = [&](const std::optional<double>& x) {
    return x ? format.cell(*x) : cli::Cell::none();
  };
  for (const evaluate::DivergenceRow& row : rows) {
    const evaluate::RatioMean& mean = row.numbers.mean;
    const auto interval = row.interval();
    table.row({name_in(evaluate::divergence_measure_names(), row.measure), index(row.layer),
               index(row.head), mean.lines, tokens_of(mean), format.cell(row.value()),
               number(interval ? std::optional(interval->low) : std::nullopt),
               number(interval ? std::optional(interval->high) : std::nullopt),
               number(row.worst())});
  }
  table.finish();
}

/// Whether the rows of the model predict the next token.
bool predicts_next(const commands::OpenedModel& opened) {
  const model::Design& design = opened.model->design();
  return design.head.kind == model::HeadKind::kCausal && design.streams != model::Streams::kTwo;
}

cli::ExitCode run_against(const Options& o, const commands::OpenedModel& opened,
                          const cli::Command& command, cli::Session& session) {
  evaluate::DivergenceRequest request;
  request.parts = parse_names("what", o.what.value_or("states,attention,predictions"),
                              evaluate::compared_part_names());
  request.batch_tokens = o.open.batch_tokens;
  const bool predictions =
      std::ranges::find(request.parts, evaluate::ComparedPart::kPredictions) != request.parts.end();
  if (request.parts.size() == 1 && predictions && !evaluate::has_vocabulary(opened.model->design()))
    throw InputError(opened.path, "has no head that predicts tokens, expected one");
  request.next_token = predictions && predicts_next(opened);
  commands::OpenModelOptions options = o.open;
  options.model = *o.against;
  const commands::OpenedModel second =
      commands::open_stack(options, o.stack, !o.sequences.records, session);
  session.note(fmt::format("{}: {}", second.path, second.description()));
  std::vector<evaluate::ScoreLeak> leaks;
  for (const commands::OpenedModel* one : {&opened, &second}) {
    if (!request.next_token) break;
    leaks.emplace_back(evaluate::ScoreKind::kCausal, one->model->design(), one->options);
    leaks.back().set_name("--what predictions");
    leaks.back().start();
  }
  std::optional<evaluate::ModelDivergence> found;
  if (const auto problem =
          input_error_message([&] { found.emplace(*opened.model, *second.model, request); }))
    throw InputError(second.path, *problem);
  const SecondReader reader(o, second, session);
  std::uint64_t texts = 0;
  commands::SequenceWork work;
  work.use = [&](evaluate::Sequence&& sequence, std::string_view text) {
    for (evaluate::ScoreLeak& leak : leaks) leak.at(sequence.size());
    evaluate::Sequence own;
    if (const auto problem = input_error_message([&] { own = reader.read(sequence, text); }))
      throw InputError(fmt::format("sequence {}: {}", sequence.number, *problem));
    ++texts;
    found->add(std::move(sequence), std::move(own));
  };
  work.flush = [&] { found->flush(); };
  const cli::ExitCode code = commands::each_sequence(o.sequences, opened, command, work, session);
  commands::refuse_empty(texts > 0, code, o.sequences.stream, o.sequences.records,
                         "no text, expected one");
  print_divergence(found->rows(), format_of(o, opened), o, session);
  return code;
}

cli::ExitCode run(const Options& o, const cli::Command& command, cli::Session& session) {
  session.configure(o.open.common);
  commands::check_sequences(o.sequences, command);
  if (o.against) check_against(o);
  if (o.what && !o.against) throw UsageError("--what needs --against");
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
  request.corruptions = parse_names("corruptions", o.corruptions.value_or("mask,drop,random"),
                                    evaluate::token_noise_names());
  request.rates = rates_of(o);
  evaluate::AverageRequest average;
  average.rates = request.rates;
  average.batch_tokens = o.open.batch_tokens;
  if (o.predicted) average.predicted = *o.predicted;
  if (o.average) average.samples = samples_of(*o.average);
  const commands::OpenedModel opened =
      commands::open_stack(o.open, o.stack, !o.sequences.records, session);
  session.note(fmt::format("{}: {}", opened.path, opened.description()));
  if (o.against) return run_against(o, opened, command, session);
  if (o.corrected) check_corrected(o, request.rates.front(), session);
  if (o.average) return run_average(o, average, opened, command, session);
  request.mask = opened.options.mask_token_id;
  request.seed = o.seed.value_or(0);
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
      "measures how far states and predictions move when other tokens are masked or dropped, or in "
      "another model");
  c.example("attn-probe consistency bert-base-uncased/ < text",
            "by rate, for masked, dropped and randomly replaced tokens");
  c.example(
      "attn-probe consistency bert/ --average 1,4,16 --rates 0.15 --corrected fixed/ < text",
      "compares the model, its average over random masks, and the model corrected by embed-fix");
  c.example("attn-probe consistency llama/ --against llama-q8_0.gguf < text",
            "what quantisation changed: states and heads of each layer, predictions, perplexity");
  commands::add_open_options(c, o->open);
  commands::add_batch_tokens(c, o->open);
  // Targets are predicted from left to right, whatever is masked.
  o->stack.stacks = commands::stack_names().first(1);
  commands::add_stack(c, o->stack);
  commands::add_sequences(c, o->sequences);
  c.option("--rates", "LIST", o->rates,
           fmt::format("shares of the tokens to corrupt [{}]", kRates));
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
  c.option("--against", "MODEL", o->against,
           "instead, compare with a second model of the same shape, opened with the same options, "
           "which reads the same ids: a quantised copy, or another step of a training");
  c.option("--what", "LIST", o->what,
           "with --against: parts to compare [states,attention,predictions]");
  commands::add_digits(c, o->open.digits);
  cli::add_seed(c, o->seed, "seed of corruptions and of the tokens that are predicted");
  cli::add_table(c, o->open.common);
  c.action([o, &c](cli::Session& session) { return run(*o, c, session); });
}

}  // namespace masque::attn_probe
