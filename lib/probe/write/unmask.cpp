#include "probe/write/unmask.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/interrupt.hpp"
#include "mask/builtin.hpp"
#include "model/masks.hpp"
#include "probe/score/batching.hpp"
#include "probe/score/logit_rows.hpp"

namespace masque::probe {

namespace {

/// A token for a mask.
struct ChosenToken {
  TokenId token = 0;
  double log_probability = 0;
};

/// A text that is written.
struct Canvas {
  Generated out;
  const MaskedText* text = nullptr;
  std::vector<TokenId> ids;
  std::size_t block_begin = 0, block_end = 0;  ///< of the masks, the block that is written
  Index steps = 0;                             ///< of the block
  Index step = 0;                              ///< the next one, or the one that runs
  std::vector<Index> asked;                    ///< places whose logits the step needs, ascending
  std::vector<ChosenToken> candidates;         ///< one each

  Index masks() const { return static_cast<Index>(block_end - block_begin); }
};

class Unmasker {
 public:
  Unmasker(const UnmaskOptions& options, Index own_block)
      : options_(options),
        block_size_(own_block > 0 ? own_block : options.block_size),
        own_blocks_(own_block > 0) {}

  static Canvas start(const MaskedText& text, Index sample) {
    Canvas canvas;
    canvas.out.id = text.id;
    canvas.out.sample = sample;
    canvas.text = &text;
    canvas.ids = text.sentence.ids;
    return canvas;
  }

  /// Goes on to the next step at which some mask may get its token, and says which logits it needs.
  /// False: there is no mask left.
  bool next(Canvas& canvas) const {
    while (true) {
      if (canvas.step == canvas.steps && !next_block(canvas)) return false;
      ask(canvas);
      if (!canvas.asked.empty()) break;
      ++canvas.step;
    }
    canvas.candidates.assign(canvas.asked.size(), {});
    return true;
  }

  /// The candidate of a place that was asked for, from its logits.
  void take(Canvas& canvas, std::size_t row, std::span<const double> given) const {
    std::vector<double> logits(given.begin(), given.end());
    logits[static_cast<std::size_t>(options_.mask)] = -std::numeric_limits<double>::infinity();
    const Index place = canvas.asked[row];
    ChosenToken& candidate = canvas.candidates[row];
    candidate.token =
        choose_token(logits, options_.sampling, uniform("unmask token", canvas, place));
    candidate.log_probability = logits[static_cast<std::size_t>(candidate.token)] - log_sum(logits);
  }

  /// Puts the step's tokens in their places.
  void put(Canvas& canvas) const {
    std::vector<std::size_t> order(canvas.asked.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (options_.order == UnmaskOrder::kConfidence) {
      std::ranges::stable_sort(order, std::greater<>(),
                               [&](std::size_t i) { return canvas.candidates[i].log_probability; });
      order.resize(static_cast<std::size_t>(count_of(canvas)));
    }
    for (const std::size_t i : order) {
      canvas.ids[static_cast<std::size_t>(canvas.asked[i])] = canvas.candidates[i].token;
      canvas.out.log_probability += canvas.candidates[i].log_probability;
    }
    ++canvas.step;
  }

 private:
  bool next_block(Canvas& canvas) const {
    const std::vector<Index>& places = canvas.text->places;
    canvas.block_begin = canvas.block_end;
    if (canvas.block_begin == places.size()) return false;
    // Blocks of the model are counted in tokens, others in masks.
    const auto block_of = [&](std::size_t i) {
      return (own_blocks_ ? places[i] : static_cast<Index>(i)) / block_size_;
    };
    do {
      ++canvas.block_end;
    } while (canvas.block_end < places.size() &&
             (block_size_ == 0 || block_of(canvas.block_end) == block_of(canvas.block_begin)));
    canvas.steps = options_.iterations == 0 ? canvas.masks() : options_.iterations;
    canvas.step = 0;
    return true;
  }

  /// Tokens that get their places at the step by confidence: the first steps have one more.
  Index count_of(const Canvas& canvas) const {
    return canvas.masks() / canvas.steps + (canvas.step < canvas.masks() % canvas.steps ? 1 : 0);
  }

  void ask(Canvas& canvas) const {
    canvas.asked.clear();
    if (options_.order == UnmaskOrder::kConfidence && count_of(canvas) == 0) return;
    // From t = (steps − step)/steps to s = t − 1/steps: (t − s)/t.
    const double share = 1 / static_cast<double>(canvas.steps - canvas.step);
    for (std::size_t i = canvas.block_begin; i < canvas.block_end; ++i) {
      const Index place = canvas.text->places[i];
      if (canvas.ids[static_cast<std::size_t>(place)] != options_.mask) continue;
      if (options_.order == UnmaskOrder::kConfidence ||
          uniform("unmask place", canvas, place) < share)
        canvas.asked.push_back(place);
    }
  }

  double uniform(std::string_view purpose, const Canvas& canvas, Index place) const {
    const RandomStream stream(options_.seed, fmt::format("{} {}", purpose, canvas.step),
                              canvas.out.id);
    return uniform_at(stream, canvas.out.sample, place);
  }

  const UnmaskOptions& options_;
  Index block_size_;
  bool own_blocks_;
};

/// A step of every text: each reads all of itself.
void run_whole(const model::Model& model, const Unmasker& unmasker, const UnmaskOptions& options,
               std::span<Canvas* const> open) {
  JobRunner runner(model, options.batch_tokens);
  for (Canvas* canvas : open) {
    Job job;
    job.ids = canvas->ids;
    job.segments = canvas->text->sentence.segments;
    if (options.mask_of) job.mask = options.mask_of(job.ids);
    job.rows = canvas->asked;
    job.take = [&unmasker, canvas](std::size_t row, std::span<const double> logits) {
      unmasker.take(*canvas, row, logits);
    };
    runner.add(std::move(job));
  }
  runner.run();
}

/// Gives the rows of a batch to their texts.
class CanvasLogits final : public LogitRowObserver {
 public:
  CanvasLogits(const Unmasker& unmasker, std::span<Canvas* const> open, std::vector<Index> firsts)
      : unmasker_(unmasker), open_(open), firsts_(std::move(firsts)) {}

 private:
  void take(Index sequence, Index row, std::span<const double> logits) override {
    const auto at = static_cast<std::size_t>(sequence);
    unmasker_.take(*open_[at], static_cast<std::size_t>(row - firsts_[at]), logits);
  }

  const Unmasker& unmasker_;
  std::span<Canvas* const> open_;
  std::vector<Index> firsts_;  ///< of each sequence, among the request's rows
};

/// The first token of the block that is written, of a model that reads in blocks.
Index first_of_block(const Canvas& canvas, Index block_size) {
  return canvas.text->places[canvas.block_begin] / block_size * block_size;
}

/// The same of a model that reads in blocks: each text reads its block, and those before it that
/// were finished since.
void run_blocks(const model::Model& model, const Unmasker& unmasker, Index block_size,
                std::span<Canvas* const> open, model::KeyValueCache& cache) {
  model::Batch batch;
  model::Request request;
  request.logits = true;
  request.cache = &cache;
  std::vector<Index> firsts;
  for (std::size_t s = 0; s < open.size(); ++s) {
    const Canvas& canvas = *open[s];
    const auto cached = static_cast<std::size_t>(cache.length(static_cast<Index>(s)));
    // The last block may end with tokens that were given.
    const Index end =
        std::min(std::ssize(canvas.ids), first_of_block(canvas, block_size) + block_size);
    const mask::Mask mask = mask::chunk_band({end, end}, block_size, 0, mask::kUnbounded);
    const auto part = [&](const auto& values) {
      return values.empty()
                 ? std::span(values)
                 : std::span(values).subspan(cached, static_cast<std::size_t>(end) - cached);
    };
    const Index row = batch.add(part(canvas.ids), {.positions = {},
                                                   .segments = part(canvas.text->sentence.segments),
                                                   .mask = mask,
                                                   .query_mask = {}}) -
                      static_cast<Index>(cached);
    firsts.push_back(std::ssize(request.rows));
    for (const Index place : canvas.asked) request.rows.push_back(row + place);
  }
  CanvasLogits observer(unmasker, open, std::move(firsts));
  model.run(batch, request, &observer);
  // What is written has another token soon.
  for (std::size_t s = 0; s < open.size(); ++s)
    cache.cut(static_cast<Index>(s), first_of_block(*open[s], block_size));
}

/// Steps of all texts until none has a mask.
void run_steps(const model::Model& model, const Unmasker& unmasker, const UnmaskOptions& options,
               Index own_block, std::vector<Canvas>& texts) {
  std::vector<Canvas*> open;
  open.reserve(texts.size());
  for (Canvas& canvas : texts) open.push_back(&canvas);
  std::unique_ptr<model::KeyValueCache> cache;
  if (own_block > 0 && !options.mask_of) cache = model.make_cache(std::ssize(open), true);
  while (true) {
    throw_if_interrupted();
    std::vector<Canvas*> left;
    std::vector<Index> from;
    for (std::size_t i = 0; i < open.size(); ++i) {
      if (!unmasker.next(*open[i])) continue;
      left.push_back(open[i]);
      from.push_back(static_cast<Index>(i));
    }
    if (cache && left.size() < open.size()) cache->select(from);
    open = std::move(left);
    if (open.empty()) return;
    if (cache) {
      run_blocks(model, unmasker, own_block, open, *cache);
    } else {
      run_whole(model, unmasker, options, open);
    }
    for (Canvas* canvas : open) unmasker.put(*canvas);
  }
}

}  // namespace

void check_unmasking(const model::Design& design, const UnmaskOptions& options) {
  const std::optional<Index> own = model::causal_block_size(design);
  if (!own || options.block_size == 0) return;
  throw UsageError(fmt::format("{} {}: the model writes in blocks of {}, expected none",
                               field("block_size"), options.block_size, *own));
}

std::vector<Generated> unmask(const model::Model& model, std::span<const MaskedText> texts,
                              const UnmaskOptions& options) {
  MASQUE_CHECK(options.num_return_sequences >= 1);
  MASQUE_CHECK(options.iterations >= 0 && options.block_size >= 0);
  const Index own_block = model::causal_block_size(model.design()).value_or(0);
  MASQUE_CHECK(own_block == 0 || options.block_size == 0);
  const Unmasker unmasker(options, own_block);
  std::vector<Canvas> canvases;
  canvases.reserve(texts.size() * static_cast<std::size_t>(options.num_return_sequences));
  for (const MaskedText& text : texts) {
    for (Index k = 0; k < options.num_return_sequences; ++k)
      canvases.push_back(Unmasker::start(text, k));
  }
  run_steps(model, unmasker, options, own_block, canvases);
  std::vector<Generated> out;
  out.reserve(canvases.size());
  for (Canvas& canvas : canvases) {
    for (const Index place : canvas.text->places)
      canvas.out.ids.push_back(canvas.ids[static_cast<std::size_t>(place)]);
    canvas.out.score = canvas.out.log_probability;
    out.push_back(std::move(canvas.out));
  }
  return out;
}

}  // namespace masque::probe
