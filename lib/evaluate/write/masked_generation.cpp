#include "evaluate/write/masked_generation.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

#include "base/error.hpp"

namespace masque::evaluate {

namespace {

MaskedPass next_left_to_right(const MaskedGenerateOptions& options, const Draft& draft,
                              Index pass) {
  if (pass == draft.masks()) return {};
  const Index shown =
      options.lead_out ? std::min(pass + 1 + *options.lead_out, draft.masks()) : Index{0};
  return {
      .masks = {pass}, .shown = shown, .sampling = options.sampling, .uniform = draws_of(draft, 0)};
}

/// The mask that a step of a sweep draws.
Index place_in_sweep(const MaskedGenerateOptions& options, const Draft& draft, Index sweep,
                     Index step) {
  if (options.order == SweepOrder::kSequential) return step;
  // Another stream than that of tokens: its numbers are used up in order.
  Draw draw(options.seed, fmt::format("masked sample {}, order of sweep {}", draft.sample, sweep),
            draft.text->id);
  return random_order(draft.masks(), draw)[static_cast<std::size_t>(step)];
}

MaskedPass next_gibbs(const MaskedGenerateOptions& options, const Draft& draft, Index pass) {
  const Index sweep = pass / draft.masks(), step = pass % draft.masks();
  if (sweep == options.sweeps) return {};
  MaskedPass out{.masks = {place_in_sweep(options, draft, sweep, step)},
                 .sampling = options.sampling,
                 .uniform = draws_of(draft, sweep)};
  if (sweep < options.burn_in)
    out.sampling = {.do_sample = true, .temperature = options.sampling.temperature};
  return out;
}

/// Iteration t > 0 hides the N (T − t) / T tokens that were least likely when they were put there.
MaskedPass next_mask_predict(const MaskedGenerateOptions& options, const Draft& draft, Index pass) {
  if (pass == options.iterations) return {};
  std::vector<Index> masks(static_cast<std::size_t>(draft.masks()));
  std::iota(masks.begin(), masks.end(), Index{0});
  if (pass > 0) {
    const Index count = draft.masks() * (options.iterations - pass) / options.iterations;
    std::ranges::stable_sort(masks, {}, [&](Index mask) {
      return draft.log_probabilities[static_cast<std::size_t>(mask)];
    });
    masks.resize(static_cast<std::size_t>(std::max<Index>(1, count)));
    std::ranges::sort(masks);
  }
  return {
      .masks = std::move(masks), .sampling = options.sampling, .uniform = draws_of(draft, pass)};
}

using NextOfWay = MaskedPass (*)(const MaskedGenerateOptions& options, const Draft& draft,
                                 Index pass);

/// A way: its name, and which masks the next pass over a draft hides and writes. nullptr: that
/// depends on more than the draft and the number of the pass; unmask() has it, in an order.
struct MaskedWayRow {
  MaskedWay way;
  std::string_view name;
  NextOfWay next;
  std::optional<UnmaskOrder> order = {};
};
constexpr std::array kMaskedWays{
    MaskedWayRow{MaskedWay::kLeftToRight, "left-to-right", next_left_to_right},
    MaskedWayRow{MaskedWay::kGibbs, "gibbs", next_gibbs},
    MaskedWayRow{MaskedWay::kMaskPredict, "mask-predict", next_mask_predict},
    MaskedWayRow{MaskedWay::kConfidence, "confidence", nullptr, UnmaskOrder::kConfidence},
    MaskedWayRow{MaskedWay::kMargin, "margin", nullptr, UnmaskOrder::kMargin},
    MaskedWayRow{MaskedWay::kEntropy, "entropy", nullptr, UnmaskOrder::kEntropy},
    MaskedWayRow{MaskedWay::kShuffled, "shuffled", nullptr, UnmaskOrder::kShuffled},
    MaskedWayRow{MaskedWay::kRandom, "random", nullptr, UnmaskOrder::kRandom},
};

constexpr auto kMaskedWayNames = [] {
  std::array<std::pair<std::string_view, MaskedWay>, kMaskedWays.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i)
    names[i] = {kMaskedWays[i].name, kMaskedWays[i].way};
  return names;
}();

constexpr std::array<std::pair<std::string_view, SweepOrder>, 2> kSweepOrderNames{
    {{"sequential", SweepOrder::kSequential}, {"random", SweepOrder::kRandom}}};

}  // namespace

NameTable<MaskedWay> masked_way_names() { return kMaskedWayNames; }

std::optional<UnmaskOrder> unmask_order(MaskedWay way) {
  const auto row = std::ranges::find(kMaskedWays, way, &MaskedWayRow::way);
  MASQUE_CHECK(row != kMaskedWays.end());
  return row->order;
}

NameTable<SweepOrder> sweep_order_names() { return kSweepOrderNames; }

MaskedPass next_pass(const MaskedGenerateOptions& options, const Draft& draft, Index pass) {
  const auto way = std::ranges::find(kMaskedWays, options.how, &MaskedWayRow::way);
  MASQUE_CHECK(way != kMaskedWays.end() && way->next != nullptr);
  return way->next(options, draft, pass);
}

UnmaskOptions unmask_options(const MaskedGenerateOptions& options) {
  MASQUE_CHECK(!options.writer.never.empty() && options.writer.targets.empty());
  UnmaskOptions out;
  out.order = unmask_order(options.how).value();
  out.times = options.times;
  out.order_temperature = options.order_temperature;
  out.iterations = options.unmask_iterations;
  out.block_size = options.block_size;
  out.sampling = options.sampling;
  out.num_return_sequences = options.num_return_sequences;
  out.seed = options.seed;
  out.mask = options.writer.never.front();
  out.batch_tokens = options.writer.batch_tokens;
  out.mask_of = options.writer.mask_of;
  return out;
}

std::vector<Generated> generate_masked(const model::Model& model, std::span<const MaskedText> texts,
                                       const MaskedGenerateOptions& options) {
  MASQUE_CHECK(options.num_return_sequences >= 1 && options.sweeps >= 1 && options.iterations >= 1);
  if (unmask_order(options.how)) return unmask(model, texts, unmask_options(options));
  std::vector<Draft> drafts;
  for (const MaskedText& text : texts) {
    for (Index k = 0; k < options.num_return_sequences; ++k) {
      drafts.emplace_back(text, k,
                          RandomStream(options.seed, fmt::format("masked sample {}", k), text.id));
    }
  }
  write_masks(
      model, [&](const Draft& draft, Index pass) { return next_pass(options, draft, pass); },
      options.writer, drafts);
  std::vector<Generated> out;
  out.reserve(drafts.size());
  for (const Draft& draft : drafts) {
    double sum = 0;
    for (const double x : draft.log_probabilities) sum += x;
    out.push_back(written(draft, sum));
  }
  return out;
}

}  // namespace masque::evaluate
