// lm-score compare: metrics of texts against references.
#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/string/comma_list.hpp"
#include "base/string/split.hpp"
#include "base/thread/ordered_work.hpp"
#include "commands.hpp"
#include "commands/result_format.hpp"
#include "commands/side_by_side.hpp"
#include "evaluate/score/text_comparison.hpp"
#include "evaluate/score/text_metrics.hpp"

namespace masque::lm_score {

namespace {

using evaluate::TextMetric;

constexpr std::int64_t kSamples = 1000;
constexpr std::int64_t kTrials = 10000;
constexpr double kMostDraws = 1e6;

struct Options {
  std::string hypothesis;
  std::vector<std::string> references;
  std::optional<std::string> against;
  std::optional<std::string> metrics;
  std::optional<evaluate::BleuTokenizer> tokenizer;
  std::optional<std::int64_t> samples;
  std::optional<std::int64_t> trials;
  std::optional<std::uint64_t> seed;
  std::optional<std::int64_t> digits;
  bool per_line = false;
  cli::InputOptions input;
  cli::CommonOptions common;
};

std::vector<TextMetric> metrics_of(const Options& o) {
  std::vector<TextMetric> metrics;
  if (!o.metrics) {
    for (const auto& [name, metric] : evaluate::text_metric_names()) metrics.push_back(metric);
    return metrics;
  }
  metrics = named_values("metrics", std::span<const std::string_view>(split(*o.metrics, ',')),
                         evaluate::text_metric_names());
  for (std::size_t i = 1; i < metrics.size(); ++i) {
    if (std::find(metrics.begin(), metrics.begin() + static_cast<std::ptrdiff_t>(i), metrics[i]) !=
        metrics.begin() + static_cast<std::ptrdiff_t>(i))
      throw UsageError(fmt::format("{}: {} is listed twice, expected once", field("metrics"),
                                   name_in(evaluate::text_metric_names(), metrics[i])));
  }
  return metrics;
}

bool has(const std::vector<TextMetric>& metrics, TextMetric metric) {
  return std::find(metrics.begin(), metrics.end(), metric) != metrics.end();
}

void check(const Options& o, const std::vector<TextMetric>& metrics) {
  if (o.per_line && (o.against || o.samples || o.trials || o.seed)) {
    throw UsageError("--per-line cannot be combined with --against, --samples, --trials or --seed");
  }
  if (o.trials && !o.against) throw UsageError("--trials needs --against");
  if (o.seed && o.samples == 0 && (!o.against || o.trials == 0))
    throw UsageError("--seed has no effect with --samples 0; remove it");
  if (o.tokenizer && !has(metrics, TextMetric::kBleu))
    throw UsageError("--bleu-tokenizer needs bleu in --metrics");
}

/// A part of the files, and what is counted in it.
struct Part {
  commands::SideBySideLines lines;
  std::vector<std::uint32_t> counts;
  std::size_t counted = 0;  ///< lines whose counts are complete
};

/// Values of each line, or of all.
class Comparer {
 public:
  Comparer(const Options& o, std::vector<TextMetric> metrics, cli::Session& session)
      : options_(o),
        session_(session),
        metrics_(std::move(metrics)),
        tokenizer_(o.tokenizer.value_or(evaluate::BleuTokenizer::k13a)),
        systems_(o.against ? 2 : 1),
        width_(evaluate::count_width(metrics_)),
        number_(commands::ResultFormat::of(kernel::Precision::kF32, o.digits)) {
    request_.samples = o.per_line ? 0 : o.samples.value_or(kSamples);
    request_.trials = o.against ? o.trials.value_or(kTrials) : 0;
    request_.seed = o.seed.value_or(0);
    request_.threads = o.common.threads;
  }

  void run() {
    std::vector<std::string> paths{options_.hypothesis};
    if (options_.against) paths.push_back(*options_.against);
    paths.insert(paths.end(), options_.references.begin(), options_.references.end());
    cli::InputOptions input = options_.input;
    // Files of two systems are compared, whose line ends may differ.
    input.crlf = true;
    commands::SideBySide files(paths, input);
    comparison_.emplace(metrics_, systems_, request_.samples + request_.trials > 0);
    if (options_.per_line) table_.emplace(session_, options_.common, line_columns());
    read(files);
    files.finish(session_);
    if (comparison_->lines() == 0)
      throw InputError(input_name(options_.hypothesis), "empty file, expected at least one line");
    session_.note(description());
    if (!options_.per_line) print_results();
    table_->finish();
  }

 private:
  std::vector<std::string> line_columns() const {
    std::vector<std::string> columns{"id"};
    for (const TextMetric m : metrics_)
      columns.emplace_back(name_in(evaluate::text_metric_names(), m));
    return columns;
  }

  void read(commands::SideBySide& files) {
    const int threads = options_.common.threads > 0 ? options_.common.threads : default_threads();
    std::vector<std::unique_ptr<evaluate::LineCounter>> counters;
    counters.reserve(static_cast<std::size_t>(threads));
    for (int i = 0; i < threads; ++i)
      counters.push_back(std::make_unique<evaluate::LineCounter>(metrics_, tokenizer_));
    const auto progress = session_.progress("reading");
    OrderedSteps<Part> steps;
    steps.read = [&](Part& part) { return files.read(part.lines); };
    steps.work = [&](Part& part, int worker) {
      count(part, *counters[static_cast<std::size_t>(worker)]);
    };
    steps.write = [&](Part& part) {
      take(part);
      if (progress && files.size() > 0)
        progress(std::min(files.done(), files.size()), files.size());
    };
    ordered_work(threads, steps);
    session_.clear_progress();
  }

  void count(Part& part, evaluate::LineCounter& counter) const {
    part.counts.clear();
    part.counted = 0;
    std::vector<std::string_view> references;
    for (std::size_t i = 0; i < part.lines.count(); ++i) {
      references.clear();
      for (std::size_t f = systems_; f < part.lines.files; ++f)
        references.push_back(part.lines.at(i, f));
      for (std::size_t s = 0; s < systems_; ++s)
        counter.add(part.lines.at(i, s), references, part.counts);
      ++part.counted;
    }
  }

  void take(const Part& part) {
    // A line that is refused may have counts of some metrics.
    comparison_->add(std::span(part.counts).first(part.counted * systems_ * width_));
    if (!options_.per_line) return;
    for (std::size_t i = 0; i < part.counted; ++i) {
      std::vector<cli::Cell> row{part.lines.first + i};
      const std::uint32_t* counts = part.counts.data() + i * width_;
      for (const TextMetric m : metrics_) {
        row.push_back(number_.cell(line_value(m, counts)));
        counts += evaluate::count_width(m);
      }
      table_->row(row);
    }
  }

  /// As sacreBLEU's signatures say it.
  std::string description() const {
    const std::size_t n = options_.references.size();
    std::string text =
        fmt::format("{}, {}", counted(comparison_->lines(), "line"), counted(n, "reference"));
    if (has(metrics_, TextMetric::kBleu)) {
      text += fmt::format("; bleu nrefs:{}|case:mixed|eff:{}|tok:{}|smooth:exp", n,
                          options_.per_line ? "yes" : "no",
                          name_in(evaluate::bleu_tokenizer_names(), tokenizer_));
    }
    if (has(metrics_, TextMetric::kChrf))
      text += fmt::format("; chrf nrefs:{}|case:mixed|eff:yes|nc:6|nw:0|space:no", n);
    if (request_.samples > 0) text += fmt::format("; {} samples", request_.samples);
    if (request_.trials > 0) text += fmt::format("; {} trials", request_.trials);
    if (request_.samples + request_.trials > 0) text += fmt::format("; seed {}", request_.seed);
    return text;
  }

  cli::Cell cell(const std::optional<double>& value) const {
    return value ? number_.cell(*value) : cli::Cell::none();
  }

  void print_results() {
    const auto progress = session_.progress("drawing");
    if (progress) request_.progress = progress;
    const std::vector<evaluate::MetricResult> results = comparison_->results(request_);
    session_.clear_progress();
    std::vector<std::string> columns{"metric", "value", "low", "high", "lines"};
    if (options_.against) {
      for (const char* name : {"against", "difference", "difference_low", "difference_high",
                               "p_bootstrap", "p_randomization"})
        columns.emplace_back(name);
    }
    table_.emplace(session_, options_.common, columns);
    for (const evaluate::MetricResult& r : results) {
      std::vector<cli::Cell> row{name_in(evaluate::text_metric_names(), r.metric), cell(r.value)};
      const auto add = [&](const std::optional<evaluate::Interval>& interval) {
        row.push_back(cell(interval ? std::optional(interval->low) : std::nullopt));
        row.push_back(cell(interval ? std::optional(interval->high) : std::nullopt));
      };
      add(r.interval);
      row.emplace_back(comparison_->lines());
      if (options_.against) {
        row.push_back(cell(r.against));
        row.push_back(cell(r.value - *r.against));
        add(r.difference_interval);
        row.push_back(cell(r.p_bootstrap));
        row.push_back(cell(r.p_randomization));
      }
      table_->row(row);
    }
  }

  const Options& options_;
  cli::Session& session_;
  std::vector<TextMetric> metrics_;
  evaluate::BleuTokenizer tokenizer_;
  std::size_t systems_;
  std::size_t width_;
  commands::ResultFormat number_;
  evaluate::ComparisonRequest request_;
  std::optional<evaluate::TextComparison> comparison_;
  std::optional<cli::Table> table_;
};

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  const std::vector<TextMetric> metrics = metrics_of(o);
  check(o, metrics);
  Comparer(o, metrics, session).run();
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_compare(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c =
      tool.subcommand("compare", "BLEU, chrF, ROUGE-L, WER and other metrics against references");
  c.example("lm-score compare hyp.txt ref.txt", "all metrics with bootstrap intervals");
  c.example("lm-score compare new.txt ref1.txt ref2.txt --against old.txt",
            "compares two systems on two references: values, difference, p-values");
  c.example("lm-score compare hyp.txt ref.txt --metrics bleu,chrf --per-line",
            "sentence BLEU and chrF of each line");
  c.argument("HYP", o->hypothesis,
             "the text to evaluate, one segment per line; - is standard input");
  c.arguments("REF", o->references, "reference texts with the same number of lines");
  c.option("--against", "FILE", o->against,
           "another system's text; adds its values, the difference and two paired tests");
  c.option("--metrics", "LIST", o->metrics,
           fmt::format("metrics to compute, from {} [all]",
                       comma_list(evaluate::text_metric_names(),
                                  [](const auto& entry) { return entry.first; })));
  c.choice("--bleu-tokenizer", o->tokenizer, evaluate::bleu_tokenizer_names(),
           "sacreBLEU's name of the tokenizer for BLEU [13a]");
  c.option("--samples", "N", o->samples, cli::AllowedRange{0, kMostDraws},
           "number of bootstrap samples for intervals and p_bootstrap; 0: none [1000]");
  c.option("--trials", "N", o->trials, cli::AllowedRange{0, kMostDraws},
           "with --against: number of random exchanges for p_randomization; 0: none [10000]");
  cli::add_seed(c, o->seed, "seed of samples and trials");
  c.flag("--per-line", o->per_line, "prints values of each line instead of the whole text");
  commands::add_digits(c, o->digits);
  cli::add_input(c, o->input);
  cli::add_threads(c, o->common);
  cli::add_quiet(c, o->common);
  add_table(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::lm_score
