#include "evaluate/write/unmask.hpp"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "model/masks.hpp"

namespace masque::evaluate {

namespace {

/// Where the unmasking of a draft is.
struct UnmaskProgress {
  std::size_t block_begin = 0, block_end = 0;  ///< of the masks, the block that is written
  Index steps = 0;                             ///< of the block
  Index step = 0;                              ///< the next one

  Index masks() const { return static_cast<Index>(block_end - block_begin); }
};

/// Which masks get their tokens when.
class UnmaskSchedule {
 public:
  /// The drafts are borrowed. `own_block`: of a model that reads in blocks, or 0.
  UnmaskSchedule(const UnmaskOptions& options, Index own_block, std::span<const Draft> drafts)
      : options_(options),
        block_size_(own_block > 0 ? own_block : options.block_size),
        own_blocks_(own_block > 0),
        drafts_(drafts),
        progress_(drafts.size()) {}

  /// The next step at which some mask may get its token, as a pass.
  MaskedPass next(const Draft& draft) {
    UnmaskProgress& at = progress_[static_cast<std::size_t>(&draft - drafts_.data())];
    while (at.step < at.steps || next_block(draft, at)) {
      MaskedPass pass = pass_of(draft, at);
      ++at.step;
      if (!pass.masks.empty()) return pass;
    }
    return {};
  }

 private:
  bool next_block(const Draft& draft, UnmaskProgress& at) const {
    const std::vector<Index>& places = draft.text->places;
    at.block_begin = at.block_end;
    if (at.block_begin == places.size()) return false;
    // Blocks of the model are counted in tokens, others in masks.
    const auto block_of = [&](std::size_t i) {
      return (own_blocks_ ? places[i] : static_cast<Index>(i)) / block_size_;
    };
    do {
      ++at.block_end;
    } while (at.block_end < places.size() &&
             (block_size_ == 0 || block_of(at.block_end) == block_of(at.block_begin)));
    at.steps = options_.iterations == 0 ? at.masks() : options_.iterations;
    at.step = 0;
    return true;
  }

  /// Tokens that get their places at the step, of `left` masks.
  Index count_of(const UnmaskProgress& at, Index left) const {
    if (options_.times == UnmaskTimes::kEven)
      return at.masks() / at.steps + (at.step < at.masks() % at.steps ? 1 : 0);
    const float some = static_cast<float>(left) * static_cast<float>(share_of(at));
    return at.step + 1 == at.steps ? left : static_cast<Index>(some);
  }

  /// (t − s)/t of the step from t to s.
  double share_of(const UnmaskProgress& at) const {
    if (at.step + 1 == at.steps) return 1;
    if (options_.times == UnmaskTimes::kEven) return 1 / static_cast<double>(at.steps - at.step);
    return 1 - time_of(at.step + 1, at.steps) / time_of(at.step, at.steps);
  }

  /// Time number `step` of `steps` + 1 from 1 to 0.001, from the nearer end.
  static float time_of(Index step, Index steps) {
    constexpr float kLast = 1e-3F;
    const float distance = (kLast - 1) / static_cast<float>(steps);
    if (step < (steps + 1) / 2) return 1 + distance * static_cast<float>(step);
    return kLast - distance * static_cast<float>(steps - step);
  }

  /// Whether `order` has what order_temperature divides.
  static bool draws_places(UnmaskOrder order) {
    return order != UnmaskOrder::kShuffled && order != UnmaskOrder::kRandom;
  }

  static TokenRank rank_of(UnmaskOrder order) {
    switch (order) {
      case UnmaskOrder::kMargin: return TokenRank::kMargin;
      case UnmaskOrder::kEntropy: return TokenRank::kEntropy;
      case UnmaskOrder::kShuffled: return TokenRank::kUniform;
      case UnmaskOrder::kConfidence:
      case UnmaskOrder::kRandom: break;
    }
    return TokenRank::kProbability;
  }

  MaskedPass pass_of(const Draft& draft, const UnmaskProgress& at) const {
    MaskedPass pass{.masks = {}, .sampling = options_.sampling};
    for (auto mask = static_cast<Index>(at.block_begin); mask < static_cast<Index>(at.block_end);
         ++mask) {
      if (draft.tokens[static_cast<std::size_t>(mask)] == options_.mask) pass.masks.push_back(mask);
    }
    const auto chance = draws("unmask place", draft, at);
    if (options_.order == UnmaskOrder::kRandom) {
      const double share = share_of(at);
      std::erase_if(pass.masks, [&](Index mask) { return chance(mask) >= share; });
    } else {
      pass.kept = count_of(at, std::ssize(pass.masks));
      pass.kept_by = rank_of(options_.order);
      if (pass.kept == 0) pass.masks.clear();
    }
    pass.rank = chance;
    if (draws_places(options_.order)) pass.rank_temperature = options_.order_temperature;
    pass.uniform = draws("unmask token", draft, at);
    return pass;
  }

  /// The numbers of a step, by the place of a mask in its text.
  std::function<double(Index mask)> draws(std::string_view purpose, const Draft& draft,
                                          const UnmaskProgress& at) const {
    const RandomStream stream(options_.seed, fmt::format("{} {}", purpose, at.step),
                              draft.text->id);
    return [stream, &draft](Index mask) {
      return uniform_at(stream, draft.sample, draft.text->places[static_cast<std::size_t>(mask)]);
    };
  }

  const UnmaskOptions& options_;
  Index block_size_;
  bool own_blocks_;
  std::span<const Draft> drafts_;
  std::vector<UnmaskProgress> progress_;  ///< one a draft
};

constexpr std::array<std::pair<std::string_view, UnmaskTimes>, 2> kTimesNames{
    {{"even", UnmaskTimes::kEven}, {"epsilon", UnmaskTimes::kToEpsilon}}};

}  // namespace

NameTable<UnmaskTimes> unmask_times_names() { return kTimesNames; }

void check_unmasking(const model::Design& design, const UnmaskOptions& options) {
  const std::optional<Index> own = model::causal_block_size(design);
  if (!own || options.block_size == 0) return;
  throw UsageError(fmt::format("{} {}: the model writes in blocks of {}; remove the option",
                               field("block_size"), options.block_size, *own));
}

std::vector<Generated> unmask(const model::Model& model, std::span<const MaskedText> texts,
                              const UnmaskOptions& options) {
  MASQUE_CHECK(options.num_return_sequences >= 1);
  MASQUE_CHECK(options.iterations >= 0 && options.block_size >= 0);
  const Index own_block = model::causal_block_size(model.design()).value_or(0);
  MASQUE_CHECK(own_block == 0 || options.block_size == 0);
  std::vector<Draft> drafts;
  for (const MaskedText& text : texts) {
    for (Index k = 0; k < options.num_return_sequences; ++k) drafts.emplace_back(text, k);
  }
  UnmaskSchedule schedule(options, own_block, drafts);
  MaskedWriterOptions writer;
  writer.excluded = options.mask;
  writer.batch_tokens = options.batch_tokens;
  writer.mask_of = options.mask_of;
  if (!options.mask_of) writer.cached_block_size = own_block;
  write_masks(
      model, [&](const Draft& draft, Index /*pass*/) { return schedule.next(draft); }, writer,
      drafts);
  std::vector<Generated> out;
  out.reserve(drafts.size());
  for (const Draft& draft : drafts) out.push_back(written(draft, draft.put_log_probability));
  return out;
}

}  // namespace masque::evaluate
