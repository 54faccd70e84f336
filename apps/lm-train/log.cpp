#include "log.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/json_writer.hpp"
#include "draw/chart.hpp"
#include "draw/svg.hpp"
#include "kernel/product_speed.hpp"

namespace masque::lm_train {

namespace {

using Clock = std::chrono::steady_clock;

// Lines that report the loss where no terminal shows it all the time.
constexpr std::int64_t kReports = 20;

/// Steps between two reports, and what each is about.
std::int64_t report_every(std::int64_t steps) {
  return std::max<std::int64_t>(1, steps / kReports);
}

// Discriminators of small models that had learned nothing had areas up to 0.56
// (scripts/experiments/results/README.md).
constexpr double kDetectsNothing = 0.6;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// Means of what may have no rows: then they are no number.
double mean_of(const train::LossReport& r) { return r.weight > 0 ? r.mean() : kNone; }
double accuracy_of(const train::LossReport& r) { return r.rows > 0 ? r.accuracy() : kNone; }

double mean_of(const train::StepLosses& losses) {
  const auto counts = [](const train::LossPart& p) { return p.factor != 0 && p.report.weight > 0; };
  return std::ranges::any_of(losses.parts, counts) ? losses.mean() : kNone;
}

double accuracy_of(const train::StepLosses& losses) {
  return losses.parts.empty() ? kNone : accuracy_of(losses.parts.back().report);
}

/// For people: a line of "loss 1.2345".
std::string shown(double value) {
  return std::isfinite(value) ? fmt::format("{:.4f}", value) : "-";
}

/// Of several networks each one's loss and accuracy, and what else was counted.
void add_parts(const train::StepLosses& losses, std::string_view prefix, JsonWriter& json) {
  const auto add = [&](std::string_view name, std::string_view measure, double value) {
    json.member(fmt::format("{}{}{}", prefix, name, measure), value);
  };
  for (const train::LossPart& part : losses.parts) {
    const train::LossReport& report = part.report;
    for (std::size_t k = 0; report.sequences > 0 && k < train::kDiversities; ++k) {
      add("diversity_", train::kDiversityNames[k],
          report.diversity[k] / static_cast<double>(report.sequences));
    }
    if (report.coded > 0)
      add("divergence", "", report.divergence / static_cast<double>(report.coded));
    if (part.name.empty()) continue;
    add(part.name, part.judged ? "_loss" : "", mean_of(report));
    if (part.judged) add(part.name, "_accuracy", accuracy_of(report));
  }
  if (!losses.detections.empty()) add("discriminator", "_auc", losses.detections.area());
  for (const train::Share& share : losses.shares)
    add(share.name, "", static_cast<double>(share.count) / static_cast<double>(share.of));
}

}  // namespace

Log::Log(const TrainOptions& options, train::TrainingRun& run, cli::Session& session)
    : options_(options), run_(run), session_(session) {
  if (session.shows_progress())
    peak_ = kernel::measure_product(options.precision) * options.launch->ranks().count();
  if (options.launch->ranks().is_first()) {
    metrics_.emplace(options.output);
    timing_ = Timing(options.timing, options.resume);
  }
  begin_ = Clock::now();
}

double Log::seconds() const { return std::max(seconds_since(begin_), 1e-9); }

double Log::tokens_per_second() const { return tokens_ / seconds(); }

void Log::add_line(const MetricsLine& line) {
  if (line.loss) add_loss(line.step, *line.loss);
  if (line.evaluation) {
    evaluated_ = line.step;
    held_out_.add(line.step, line.eval_loss);
  }
  if (line.never_selected) never_selected_ = line.step;
}

void Log::go_on(const std::string& path) {
  for_each_metrics_line(
      path, [this](const MetricsLine& line) { add_line(line); },
      [this](std::string_view text) {
        if (metrics_) metrics_->append(text);
      });
}

void Log::add_loss(std::int64_t step, double loss) {
  curve_.add(step, loss);
  has_loss_ = has_loss_ || std::isfinite(loss);
  recent_.push_back(loss);
  const std::int64_t kept = report_every(run_.trainer().steps());
  while (std::ssize(recent_) > kept) recent_.pop_front();
}

void Log::append(const std::string& line) {
  if (metrics_) metrics_->append(line + '\n');
}

std::string Log::line(std::int64_t step, std::int64_t steps) {
  MeanLoss mean;
  for (const double loss : recent_) mean.add(loss);
  const double a_step = seconds() / static_cast<double>(own_steps_);
  const std::string share = operations_ > 0 ? fmt::format(" ({:.0f} % of the peak)",
                                                          100 * operations_ / seconds() / peak_)
                                            : "";
  return fmt::format("step {} of {}: loss {}, {:.0f} tokens/s{}, {:.0f} s left", step, steps,
                     shown(mean.value()), tokens_per_second(), share,
                     a_step * static_cast<double>(steps - step));
}

void Log::step(const train::StepReport& r, std::int64_t steps) {
  const double loss = mean_of(r.loss);
  add_loss(r.step, loss);
  ++own_steps_;
  tokens_ += static_cast<double>(r.tokens);
  if (peak_ > 0) operations_ += run_.operations(r);
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("step", r.step).member("loss", loss);
  json.member("accuracy", accuracy_of(r.loss)).member("learning_rate", r.learning_rate);
  json.member("gradient_norm", r.gradient_norm).member("tokens", r.tokens);
  add_parts(r.loss, "", json);
  json.end_object();
  append(text);
  timing_.add(r);
  if (session_.shows_progress()) {
    session_.status([&] { return line(r.step, steps); });
    if (r.step != steps) return;
  }
  if (r.step % report_every(steps) == 0 || r.step == steps) session_.note(line(r.step, steps));
}

void Log::evaluation(std::int64_t step, const train::StepLosses& r) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("step", step).member("eval_loss", mean_of(r));
  json.member("eval_accuracy", accuracy_of(r)).member("eval_rows", r.rows());
  add_parts(r, "eval_", json);
  json.end_object();
  append(text);
  evaluated_ = step;
  held_out_.add(step, mean_of(r));
  const double area = r.detections.area();
  session_.note(fmt::format("step {}: eval loss {}, accuracy {}{} on {} tokens", step,
                            shown(mean_of(r)), shown(accuracy_of(r)),
                            r.detections.empty() ? "" : fmt::format(", AUC {}", shown(area)),
                            r.rows()));
  if (step == run_.trainer().steps() && area < kDetectsNothing) {
    session_.note(fmt::format(
        "the discriminator hardly distinguishes replaced tokens (AUC {}, 0.5 is chance), "
        "whatever its accuracy; with a smaller {} it may learn more",
        shown(area), field("learning_rate")));
  }
}

void Log::never_selected(std::int64_t step, const train::LossReport& r) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("step", step).member("never_selected_loss", mean_of(r));
  json.member("never_selected_accuracy", accuracy_of(r)).member("never_selected_rows", r.rows);
  json.end_object();
  append(text);
  never_selected_ = step;
  session_.note(fmt::format("step {}: loss {} and accuracy {} on positions without a training loss",
                            step, shown(mean_of(r)), shown(accuracy_of(r))));
}

std::string Log::picture() const {
  draw::Chart chart;
  chart.title = fmt::format("{}: loss", options_.objective);
  chart.x.name = "step";
  chart.y.name = "nats per token";
  const draw::Curve held_out = held_out_.curve("held-out text");
  chart.curves.push_back(curve_.curve(held_out.x.empty() ? "loss" : "training batches"));
  if (!held_out.x.empty()) chart.curves.push_back(held_out);
  return draw::svg(chart);
}

}  // namespace masque::lm_train
