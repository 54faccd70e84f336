#include "length/run.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/file/output_file.hpp"
#include "base/thread/parallel.hpp"
#include "length/cell.hpp"
#include "length/store.hpp"
#include "mask/expression.hpp"
#include "model/layer_list.hpp"
#include "model/variants.hpp"
#include "nn/position/position_scheme.hpp"

namespace masque::length {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kTrialShare = 0.05;  // of the budget, for all arms
constexpr double kMostTrial = 1;      // seconds
constexpr Index kTrialExamples = 8;   // one of so many

class Run {
 public:
  explicit Run(const LengthRequest& request) : request_(request), store_(request.folder) {}

  LengthResult all() {
    LengthResult result;
    result.steps = request_.steps ? *request_.steps : budget_steps();
    std::size_t cell = 0;
    for (std::size_t arm = 0; arm < request_.arms; ++arm) {
      for (const std::uint64_t seed : request_.seeds) {
        if (request_.only.value_or(cell) == cell) add(arm, seed, result);
        ++cell;
      }
    }
    return result;
  }

 private:
  /// What is kept of a cell, or trained now.
  void add(std::size_t arm, std::uint64_t seed, LengthResult& result) {
    const train::RunOptions options = request_.options(arm, result.steps, seed);
    const LengthSubject::Settings named = settings(options);
    CellFiles files;
    files.checkpoint = store_.checkpoint(named);
    if (request_.keep_models) files.model = store_.model(named, options.design, seed);
    const std::vector<Index> lengths = scored_lengths(request_, options.design);
    auto rows = store_.find(named, lengths, arm, seed);
    if (!rows || !has_models(files)) {
      const WorkLock lock(files.checkpoint);
      // Another process may have done it since.
      rows = store_.find(named, lengths, arm, seed);
      if (!rows || !has_models(files)) {
        rows = train_cell(request_, options, arm, seed, files);
        store_.keep(named, *rows);
      }
    }
    store_.drop_checkpoint(named);
    result.rows.insert(result.rows.end(), rows->begin(), rows->end());
    result.settings.push_back(named);
  }

  /// Whether all models are there that are to be kept. Fine-tuned ones come later.
  bool has_models(const CellFiles& files) const {
    if (files.model.empty()) return true;
    if (!exists(files.model)) return false;
    if (!request_.finetuning) return true;
    return std::ranges::all_of(request_.finetuning->lengths, [&](Index length) {
      return exists(finetuned_model(files.model, length));
    });
  }

  LengthSubject::Settings settings(const train::RunOptions& options) const {
    LengthSubject::Settings all = options.settings;
    for (auto& more : request_.subject->settings()) all.push_back(std::move(more));
    all.emplace_back("eval_lengths", fmt::format("{}", fmt::join(request_.eval_lengths, ",")));
    all.emplace_back("windows", fmt::format("{}", fmt::join(request_.windows, ",")));
    if (request_.finetuning) {
      const auto& [lengths, schedule] = *request_.finetuning;
      all.emplace_back("finetune_lengths", fmt::format("{}", fmt::join(lengths, ",")));
      all.emplace_back("finetune_steps", fmt::format("{}", schedule.steps));
      all.emplace_back("finetune_learning_rate", fmt::format("{}", schedule.learning_rate));
    }
    return all;
  }

  /// As many steps as all arms can make together in the time.
  std::int64_t budget_steps() {
    const auto begin = Clock::now();
    LengthSubject::Settings requested{{"budget", fmt::format("{}", request_.budget_seconds)},
                                      {"seeds", fmt::format("{}", fmt::join(request_.seeds, ","))}};
    for (std::size_t arm = 0; arm < request_.arms; ++arm) {
      for (const auto& one : settings(request_.options(arm, 1, 0))) requested.push_back(one);
    }
    const std::string digest = settings_digest(requested);
    if (const auto known = store_.steps(digest)) {
      request_.note(
          fmt::format("same as before: {} {} for each design and seed", field("steps"), *known));
      return *known;
    }
    const double trial = std::min(
        kMostTrial, request_.budget_seconds * kTrialShare / static_cast<double>(request_.arms));
    double step_seconds = 0, rest_seconds = 0;
    for (std::size_t arm = 0; arm < request_.arms; ++arm) {
      train::RunOptions options = request_.options(arm, 1, request_.seeds.front());
      options.trainer.schedule.learning_rate = 0;
      const auto learner = request_.subject->learner(options);
      step_seconds += seconds_a_step(learner->trainer(), trial);
      rest_seconds += finetuning_seconds(*learner, options, trial);
      learner->network().prepare();
      rest_seconds += scoring_seconds(options.design, learner->network());
    }
    const auto seeds = static_cast<double>(request_.seeds.size());
    const double left = request_.budget_seconds - request_.spent_seconds - seconds_since(begin) -
                        seeds * rest_seconds;
    const auto steps = static_cast<std::int64_t>(left / (seeds * step_seconds));
    if (steps < 1) {
      throw UsageError(
          fmt::format("{}: scoring alone takes {:.0f} s; allow more time, or score less",
                      field("budget"), seeds * rest_seconds));
    }
    request_.note(
        fmt::format("{:.0f} s for scoring; the rest allows {} {} for each design and seed",
                    seeds * rest_seconds, field("steps"), steps));
    store_.keep_steps(digest, steps);
    return steps;
  }

  static double seconds_a_step(train::Trainer& trainer, double trial) {
    trainer.step();  // the first one touches all memory
    const auto start = Clock::now();
    int steps = 0;
    do {
      trainer.step();
      ++steps;
    } while (seconds_since(start) < trial);
    return seconds_since(start) / steps;
  }

  double finetuning_seconds(Learner& learner, const train::RunOptions& options,
                            double trial) const {
    if (!request_.finetuning) return 0;
    Finetuning still = *request_.finetuning;
    still.schedule.learning_rate = 0;
    double seconds = 0;
    for (const Index length : still.lengths) {
      const auto trainer = learner.finetuner(length, finetuning_options(options, still));
      seconds += seconds_a_step(*trainer, trial / static_cast<double>(still.lengths.size())) *
                 static_cast<double>(still.schedule.steps);
    }
    return seconds;
  }

  /// Of a fine-tuned model what the trained one needs at that length.
  double scoring_seconds(const train::DesignRecipe& design, train::Network<float>& network) const {
    std::vector<Index> lengths = scored_lengths(request_, design);
    if (request_.finetuning) {
      const auto& more = request_.finetuning->lengths;
      lengths.insert(lengths.end(), more.begin(), more.end());
    }
    const auto begin = Clock::now();
    for (const Index window : request_.windows) {
      for (const Index length : lengths)
        score_at(*request_.subject, network, window, length, kTrialExamples);
    }
    return seconds_since(begin) * static_cast<double>(kTrialExamples);
  }

  const LengthRequest& request_;
  LengthStore store_;
};

}  // namespace

namespace {

/// What ends the positions of `design`, as in messages.
std::string table_of(const train::DesignRecipe& design) {
  if (design.late_positions > 0) return field("late_positions");
  return fmt::format("{} {}", field("position"), design.position);
}

/// Of a design whose positions end: says which lengths it is not scored at, or only once it is
/// fine-tuned. Throws UsageError if it reaches none.
void check_table(const LengthRequest& request, const train::DesignRecipe& design) {
  const LengthSubject& subject = *request.subject;
  const std::vector<Index> scored = scored_lengths(request, design);
  std::vector<Index> finetuned, never;
  for (const Index length : request.eval_lengths) {
    if (std::ranges::find(scored, length) != scored.end()) continue;
    const bool reached =
        request.finetuning && std::ranges::count(request.finetuning->lengths, length) > 0;
    (reached ? finetuned : never).push_back(length);
  }
  const bool extends = design.late_positions == 0 && design.position == "learned";
  const Index count = position_count(design, subject.longest_trained());
  const auto say = [&](const std::vector<Index>& lengths, std::string_view what) {
    if (lengths.empty()) return;
    request.note(fmt::format("{}: {} positions after training; length {}: {}", table_of(design),
                             count, fmt::join(lengths, ", "), what));
  };
  if (scored.empty() && finetuned.empty()) {
    throw UsageError(
        fmt::format("{} has {} positions, and every length to score needs more; use shorter "
                    "lengths{}",
                    table_of(design), count,
                    extends ? ", or learned(alpha=0.4), which extends its table" : ""));
  }
  say(finetuned, "scored only after fine-tuning");
  say(never, extends ? "skipped; learned(alpha=0.4) extends its table" : "skipped");
}

/// Refuses masks that do not fit, or through which rows read what they predict, before any model is
/// trained.
void check_masks(const LengthRequest& request) {
  const LengthSubject& subject = *request.subject;
  std::vector<Index> lengths{subject.longest_trained()};
  for (const Index length : request.eval_lengths) lengths.push_back(subject.tokens(length));
  for (std::size_t arm = 0; arm < request.arms; ++arm) {
    if (request.only && *request.only / request.seeds.size() != arm) continue;
    const train::RunOptions options = request.options(arm, 1, request.seeds.front());
    if (options.mask.empty()) continue;
    for (const mask::MaskLayer& layer : mask::parse_mask_layers(options.mask)) {
      for (const Index length : lengths) {
        const mask::MaskExpression any = layer.mask.any_head();
        if (const auto problem = usage_error_message([&] { any.bind_sequence(length); }))
          throw UsageError(fmt::format("{} {}", field("mask"), *problem));
      }
    }
    request.subject->learner(options);
  }
}

}  // namespace

Index position_count(const train::DesignRecipe& design, Index trained) {
  if (positions_end(design)) return trained;
  if (!design.mixer.empty()) return 0;  // as many as are scored
  Index count = 0;
  for (const std::string& one : model::LayerList(design.position).choices()) {
    const Index more = nn::parse_position(model::position_text(one))->position_count(trained);
    if (more > 0) count = count == 0 ? more : std::min(count, more);
  }
  return count;
}

double LengthSubject::chance(Index length) const {
  std::map<TokenId, Index> counts;
  Index all = 0, most = 0;
  for (const train::Example& example : examples(length)) {
    for (const TokenId target : example.targets) {
      most = std::max(most, ++counts[target]);
      ++all;
    }
  }
  return static_cast<double>(most) / static_cast<double>(all);
}

LengthResult run_lengths(const LengthRequest& request) {
  MASQUE_CHECK(!request.only || request.steps);
  MASQUE_CHECK(request.arms > 0 && !request.seeds.empty() && !request.eval_lengths.empty());
  std::set<std::string> checked;
  for (std::size_t arm = 0; arm < request.arms; ++arm) {
    const train::DesignRecipe design = request.options(arm, 1, 0).design;
    if (scored_lengths(request, design).size() == request.eval_lengths.size()) continue;
    if (checked.insert(table_of(design)).second) check_table(request, design);
  }
  check_masks(request);
  return Run(request).all();
}

std::vector<LengthSummary> summarise_lengths(const std::vector<LengthRow>& rows) {
  std::vector<LengthSummary> all;
  const auto is = [](const LengthSummary& s, const LengthRow& r) {
    return s.arm == r.arm && s.finetuned == r.finetuned && s.window == r.window &&
           s.length == r.length;
  };
  for (const LengthRow& row : rows) {
    if (std::ranges::any_of(all, [&](const auto& s) { return is(s, row); })) continue;
    LengthSummary& cell = all.emplace_back();
    cell.arm = row.arm;
    cell.finetuned = row.finetuned;
    cell.window = row.window;
    cell.length = row.length;
    cell.targets = row.targets;
    const auto over_seeds = [&](double LengthRow::*field) {
      std::vector<double> values;
      for (const LengthRow& one : rows) {
        if (is(cell, one)) values.push_back(one.*field);
      }
      return evaluate::summarise(values);
    };
    cell.accuracy = over_seeds(&LengthRow::accuracy);
    cell.loss = over_seeds(&LengthRow::loss);
    cell.whole = over_seeds(&LengthRow::whole);
  }
  return all;
}

bool above_chance(const LengthSummary& cell, double chance) {
  const auto seeds = static_cast<double>(cell.accuracy.n);
  const double of_seeds = cell.accuracy.n > 1 ? cell.accuracy.sd / std::sqrt(seeds) : 0;
  const double of_targets = std::sqrt(chance * (1 - chance) / static_cast<double>(cell.targets));
  return cell.accuracy.mean > chance + 2 * std::max(of_seeds, of_targets);
}

}  // namespace masque::length
