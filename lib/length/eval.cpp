#include "length/eval.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "base/thread/interrupt.hpp"
#include "base/thread/parallel.hpp"
#include "evaluate/score/model_kinds.hpp"
#include "evaluate/score/score_leak.hpp"
#include "length/stream.hpp"
#include "mask/builtin.hpp"
#include "model/masks.hpp"
#include "records/selection.hpp"

namespace masque::length {

namespace {

using evaluate::ScoreKind;
using model::HeadKind;

/// The likeliest token of every row.
class LikeliestTokens final : public model::Observer {
 public:
  explicit LikeliestTokens(std::size_t rows) : tokens(rows, -1) {}
  void logits(Index, Index first, MatrixView<const float> rows) override { take(first, rows); }
  void logits(Index, Index first, MatrixView<const double> rows) override { take(first, rows); }

  std::vector<TokenId> tokens;

 private:
  template <class T>
  void take(Index first, MatrixView<const T> rows) {
    for (Index i = 0; i < rows.rows; ++i) {
      const std::span<const T> row = rows.row_span(i);
      tokens[static_cast<std::size_t>(first + i)] =
          static_cast<TokenId>(std::ranges::max_element(row) - row.begin());
    }
  }
};

/// Blocks of one cell, batch by batch; sums for every part of the text.
class CellScorer {
 public:
  CellScorer(const model::Model& model, Index batch_tokens, std::size_t parts)
      : model_(model), batch_tokens_(batch_tokens), parts_(parts) {}

  void add(const train::Example& block, std::span<const Index> parts) {
    if (!batch_.ids.empty() && std::ssize(batch_.ids) + block.size() > batch_tokens_) run();
    const Index begin = batch_.add(block.ids, {{}, {}, block.mask, {}});
    for (const Index row : block.rows) request_.rows.push_back(begin + row);
    request_.targets.insert(request_.targets.end(), block.targets.begin(), block.targets.end());
    part_of_.insert(part_of_.end(), parts.begin(), parts.end());
  }

  LengthScore finish() {
    if (!batch_.ids.empty()) run();
    LengthScore score;
    for (const Part& part : parts_) {
      score.loss.add(part.loss, part.targets);
      score.accuracy.add(part.right, part.targets);
    }
    return score;
  }

 private:
  struct Part {
    double loss = 0, right = 0, targets = 0;
  };

  void run() {
    throw_if_interrupted();
    if (!request_.rows.empty()) {
      request_.logits = true;
      LikeliestTokens likeliest(request_.rows.size());
      const std::vector<double> found = model_.run(batch_, request_, &likeliest);
      for (std::size_t r = 0; r < found.size(); ++r) {
        Part& part = parts_[static_cast<std::size_t>(part_of_[r])];
        part.loss -= found[r];
        part.right += likeliest.tokens[r] == request_.targets[r] ? 1 : 0;
        ++part.targets;
      }
    }
    batch_ = {};
    request_ = {};
    part_of_.clear();
  }

  const model::Model& model_;
  Index batch_tokens_;
  std::vector<Part> parts_;
  model::Batch batch_;
  model::Request request_;
  std::vector<Index> part_of_;  ///< one a row
};

}  // namespace

std::string length_objective(const model::TreatableModel& model) {
  const model::Design& design = model.design();
  if (const auto problem = input_error_message([&] { evaluate::check_reads_one_text(design); }))
    throw InputError(model.path(), *problem);
  if (design.head.kind == HeadKind::kNone)
    throw InputError(model.path(), model::missing_head(design));
  if (model::has_one_number(design.head.kind) || design.streams == model::Streams::kTwo)
    throw InputError(model.path(), "expected a masked language model, a T-TA or a causal model");
  const ScoreKind kind = evaluate::default_kind(design, {});
  const bool one_pass = kind == ScoreKind::kTta || kind == ScoreKind::kCausal;
  return scored_objective(one_pass ? kind : ScoreKind::kPll);
}

void check_length_objective(const std::string& objective, const model::TreatableModel& model) {
  const std::string own = length_objective(model);
  const auto refuse = [&](const std::string& why) {
    throw UsageError(fmt::format("{} {}: {} expects {}: {}", field("objective"), objective,
                                 model.path(), own, why));
  };
  const ScoreKind kind = scored_kind(objective);
  if (kind != ScoreKind::kCausal && model.design().head.kind != HeadKind::kMasked)
    refuse("its head predicts the next token");
  if (kind == ScoreKind::kPll) return;
  const auto leak =
      input_error_message([&] { evaluate::ScoreLeak(kind, model.design(), {}).start(); });
  if (leak)
    refuse(kind == ScoreKind::kCausal ? "its positions read later tokens"
                                      : "its positions read their own token");
}

model::ModelOptions TreatmentGrid::options(const LengthTreatment& treatment) const {
  model::ModelOptions options = treatment.options(trained, precision);
  options.mask_token_id = mask_token_id;
  return options;
}

train::Example treated_block(const train::Example& block, const TreatmentGrid& grid,
                             std::size_t treatment) {
  const LengthTreatment& how = grid.treatments[treatment];
  const model::Design& design = grid.model->design();
  train::Example example = block;
  if (const auto open = model::open_mask(design, how.masks)) {
    const std::vector<Index> words = records::word_lengths(block.ids, grid.tokens);
    example.mask = open->closed(words, 0).bind_sequence(block.size());
  }
  if (how.window == 0) return example;
  const mask::Lengths lengths{block.size(), block.size()};
  const mask::Mask near = mask::band(lengths, 1 - how.window, how.window - 1);
  if (!example.mask) example.mask = model::own_mask(design, block.size());
  example.mask = *example.mask & near;
  return example;
}

void for_each_cell(const TreatmentGrid& grid,
                   const std::function<void(const TreatedLength&, const model::Model&)>& use) {
  MASQUE_CHECK(grid.trained > 0 && !grid.treatments.empty() && !grid.lengths.empty());
  std::vector<TreatedLength> reached;
  for (std::size_t t = 0; t < grid.treatments.size(); ++t) {
    const model::PositionTreatment& position = *grid.treatments[t].position;
    [[maybe_unused]] const model::LayerMasks fits(grid.model->design(), grid.treatments[t].masks);
    for (const Index length : grid.lengths) {
      const Index longest = grid.model->longest(position, {grid.trained, length});
      if (longest == 0 || length <= longest) {
        reached.push_back({t, length});
        continue;
      }
      grid.note(fmt::format("{}: at most {} positions; length {} skipped", position.text(), longest,
                            length));
    }
  }
  if (reached.empty()) {
    throw UsageError(fmt::format(
        "no treatment reaches any of the lengths; {} interpolated and hierarchical extend a table",
        field("position")));
  }
  for (const TreatedLength& cell : reached) {
    const LengthTreatment& treatment = grid.treatments[cell.treatment];
    const auto model =
        grid.model->open(*treatment.position, {grid.trained, cell.length}, grid.options(treatment));
    use(cell, *model);
  }
}

std::vector<LengthScore> score_lengths(const TreatmentGrid& grid, const LengthStream& stream,
                                       const std::string& objective) {
  const Index room = stream.longest_room();
  const auto parts = static_cast<std::size_t>(divide_up(std::ssize(stream.ids()), room));
  const ScoreKind kind = scored_kind(objective);
  std::vector<evaluate::ScoreLeak> leaks;
  for (const LengthTreatment& treatment : grid.treatments) {
    evaluate::ScoreLeak& leak =
        leaks.emplace_back(kind, grid.model->design(), grid.options(treatment));
    leak.set_name(fmt::format("{} {}", field("objective"), objective));
    if (treatment.masks.empty() || kind == ScoreKind::kPll) continue;
    for (const Index length : grid.lengths) leak.at(length);
  }
  std::vector<LengthScore> all;
  for_each_cell(grid, [&](const TreatedLength& cell, const model::Model& model) {
    CellScorer scorer(model, grid.batch_tokens, parts);
    std::vector<Index> part_of = stream.positions(cell.length);
    for (Index& position : part_of) position /= room;
    std::size_t first = 0;
    const evaluate::ScoreLeak& leak = leaks[cell.treatment];
    for (const train::Example& block : stream.examples(cell.length)) {
      // A mask of words leaks, or not, by each block's words.
      if (kind != ScoreKind::kPll && leak.open())
        leak.close(records::word_lengths(block.ids, grid.tokens));
      scorer.add(treated_block(block, grid, cell.treatment),
                 std::span(part_of).subspan(first, block.rows.size()));
      first += block.rows.size();
    }
    all.push_back(scorer.finish());
    all.back().cell = cell;
  });
  return all;
}

}  // namespace masque::length
