#include "log.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/json_writer.hpp"
#include "kernel/product_speed.hpp"

namespace masque::lm_train {

namespace {

using Clock = std::chrono::steady_clock;

// Lines that report the loss where no terminal shows it all the time.
constexpr std::int64_t kReports = 20;

double mean_of(const train::LossReport& r) { return r.weight > 0 ? r.mean() : kNoMean; }
double accuracy_of(const train::LossReport& r) { return r.rows > 0 ? r.accuracy() : kNoMean; }

double mean_of(const train::StepLosses& losses) {
  const auto counts = [](const train::LossPart& p) { return p.factor != 0 && p.report.weight > 0; };
  return std::ranges::any_of(losses.parts, counts) ? losses.mean() : kNoMean;
}

double accuracy_of(const train::StepLosses& losses) {
  return losses.parts.empty() ? kNoMean : accuracy_of(losses.parts.back().report);
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
    if (part.name.empty()) continue;
    add(part.name, part.judged ? "_loss" : "", mean_of(report));
    if (part.judged) add(part.name, "_accuracy", accuracy_of(report));
  }
  for (const train::Share& share : losses.shares)
    add(share.name, "", static_cast<double>(share.count) / static_cast<double>(share.of));
}

}  // namespace

Log::Log(const TrainOptions& options, train::TrainingRun& run, cli::Session& session)
    : options_(options), run_(run), session_(session) {
  if (session.shows_progress())
    peak_ = kernel::measure_product(options.precision) * options.launch->ranks().count();
  begin_ = Clock::now();
}

double Log::seconds() const { return std::max(seconds_since(begin_), 1e-9); }

double Log::tokens_per_second() const { return tokens_ / seconds(); }

void Log::go_on(const std::string& metrics, const std::string& path) {
  MetricsRead read = read_metrics(metrics, path);
  metrics_ = metrics;
  losses_ = std::move(read.losses);
  evaluated_ = read.evaluated;
  never_selected_ = read.never_selected;
  before_ = losses_.size();
}

std::string Log::line(std::int64_t step, std::int64_t steps) const {
  const std::int64_t every = std::max<std::int64_t>(1, steps / kReports);
  const auto last = std::min<std::size_t>(losses_.size(), static_cast<std::size_t>(every));
  const double mean =
      mean_of_points({losses_.end() - static_cast<std::ptrdiff_t>(last), losses_.end()});
  const double a_step = seconds() / static_cast<double>(losses_.size() - before_);
  const std::string share = operations_ > 0 ? fmt::format(" ({:.0f} % of the peak)",
                                                          100 * operations_ / seconds() / peak_)
                                            : "";
  return fmt::format("step {} of {}: loss {}, {:.0f} tokens/s{}, {:.0f} s left", step, steps,
                     shown(mean), tokens_per_second(), share,
                     a_step * static_cast<double>(steps - step));
}

void Log::step(const train::StepReport& r, std::int64_t steps) {
  losses_.push_back({r.step, mean_of(r.loss)});
  tokens_ += static_cast<double>(r.tokens);
  if (peak_ > 0) operations_ += run_.operations(r);
  JsonWriter json(metrics_);
  json.begin_object().member("step", r.step).member("loss", losses_.back().loss);
  json.member("accuracy", accuracy_of(r.loss)).member("learning_rate", r.learning_rate);
  json.member("gradient_norm", r.gradient_norm).member("tokens", r.tokens);
  add_parts(r.loss, "", json);
  json.end_object();
  metrics_ += '\n';
  if (session_.shows_progress()) {
    session_.status(line(r.step, steps));
    if (r.step != steps) return;
  }
  if (r.step % std::max<std::int64_t>(1, steps / kReports) == 0 || r.step == steps)
    session_.note(line(r.step, steps));
}

void Log::evaluation(std::int64_t step, const train::StepLosses& r) {
  JsonWriter json(metrics_);
  json.begin_object().member("step", step).member("eval_loss", mean_of(r));
  json.member("eval_accuracy", accuracy_of(r)).member("eval_rows", r.rows());
  add_parts(r, "eval_", json);
  json.end_object();
  metrics_ += '\n';
  evaluated_ = step;
  session_.note(fmt::format("step {}: eval loss {}, accuracy {} of {} tokens", step,
                            shown(mean_of(r)), shown(accuracy_of(r)), r.rows()));
}

void Log::never_selected(std::int64_t step, const train::LossReport& r) {
  JsonWriter json(metrics_);
  json.begin_object().member("step", step).member("never_selected_loss", mean_of(r));
  json.member("never_selected_accuracy", accuracy_of(r)).member("never_selected_rows", r.rows);
  json.end_object();
  metrics_ += '\n';
  never_selected_ = step;
  session_.note(fmt::format("step {}: loss where training has none {}, accuracy {}", step,
                            shown(mean_of(r)), shown(accuracy_of(r))));
}

std::string Log::picture() const { return loss_picture(losses_, options_.objective); }

}  // namespace masque::lm_train
