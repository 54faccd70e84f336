#include "probe/write/fill.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>

#include "base/error.hpp"
#include "base/interrupt.hpp"
#include "probe/score/batching.hpp"
#include "probe/write/sampling.hpp"

namespace masque::probe {

namespace {

constexpr std::array<std::pair<std::string_view, JointFill>, 4> kJointNames{
    {{"none", JointFill::kNone},
     {"left-to-right", JointFill::kLeftToRight},
     {"beam", JointFill::kBeam},
     {"gibbs", JointFill::kGibbs}}};

/// The `count` likeliest of the tokens that may be chosen.
std::vector<Filling> likeliest(std::span<const double> logits, const FillOptions& options,
                               Index count) {
  std::vector<TokenId> ids = options.targets;
  if (ids.empty()) {
    ids.resize(logits.size());
    std::iota(ids.begin(), ids.end(), TokenId{0});
  }
  const auto logit = [&](TokenId id) { return logits[static_cast<std::size_t>(id)]; };
  const auto middle = ids.begin() + std::min(count, std::ssize(ids));
  std::ranges::partial_sort(ids, middle, [&](TokenId a, TokenId b) {
    return logit(a) != logit(b) ? logit(a) > logit(b) : a < b;
  });
  const double whole = log_sum(logits);
  std::vector<Filling> out;
  for (auto id = ids.begin(); id != middle; ++id)
    out.push_back({*id, std::exp(logit(*id) - whole)});
  return out;
}

/// A pass over a text with some of its masks filled; `take` gets the logits of each row.
Job job_of(const MaskedText& text, std::span<const TokenId> filled, std::vector<Index> rows,
           const FillOptions& options, TakeLogits take) {
  Job job;
  job.ids = text.sentence.ids;
  for (std::size_t i = 0; i < filled.size(); ++i)
    job.ids[static_cast<std::size_t>(text.places[i])] = filled[i];
  job.segments = text.sentence.segments;
  if (options.mask_of) job.mask = options.mask_of(job.ids);
  job.rows = std::move(rows);
  job.take = std::move(take);
  return job;
}

void fill_apart(JobRunner& runner, std::span<const MaskedText> texts, const FillOptions& options,
                std::vector<FilledText>& out) {
  for (std::size_t t = 0; t < texts.size(); ++t) {
    out[t].masks.resize(texts[t].places.size());
    runner.add(job_of(texts[t], {}, texts[t].places, options,
                      [&options, &masks = out[t].masks](std::size_t row, auto logits) {
                        masks[row] = likeliest(logits, options, options.top_k);
                      }));
  }
  runner.run();
}

/// A beginning of a text's fillings and one more token.
struct Longer {
  std::size_t beginning = 0;
  TokenId id = 0;
  double log_probability = 0;
};

/// The likeliest beginnings of a text's fillings, which is what a beam keeps of them.
struct Beam {
  std::vector<JointFilling> beginnings = std::vector<JointFilling>(1);
  std::vector<Longer> next;  ///< a heap: the first is the least likely one

  bool before(const Longer& a, const Longer& b) const {
    if (a.log_probability != b.log_probability) return a.log_probability > b.log_probability;
    const auto& first = beginnings[a.beginning].ids;
    const auto& second = beginnings[b.beginning].ids;
    return first != second ? first < second : a.id < b.id;
  }
  auto order() const {
    return [this](const Longer& a, const Longer& b) { return before(a, b); };
  }

  /// Offers what may follow a beginning; `width` are kept.
  void offer(std::size_t beginning, std::span<const Filling> follow, Index width) {
    for (const Filling& f : follow) {
      next.push_back(
          {beginning, f.id, beginnings[beginning].log_probability + std::log(f.probability)});
      std::ranges::push_heap(next, order());
      if (std::ssize(next) <= width) continue;
      std::ranges::pop_heap(next, order());
      next.pop_back();
    }
  }

  /// Makes those that were kept the beginnings, the likeliest first.
  void advance() {
    std::ranges::sort(next, order());
    std::vector<JointFilling> longer;
    longer.reserve(next.size());
    for (const Longer& l : next) {
      throw_if_interrupted();
      JointFilling& filling = longer.emplace_back(beginnings[l.beginning]);
      filling.ids.push_back(l.id);
      filling.log_probability = l.log_probability;
    }
    beginnings = std::move(longer);
    next.clear();
  }
};

void fill_beam(JobRunner& runner, std::span<const MaskedText> texts, Index width,
               const FillOptions& options, std::vector<FilledText>& out) {
  std::vector<Beam> beams(texts.size());
  std::mutex offering;
  bool open = true;
  for (std::size_t step = 0; open; ++step) {
    throw_if_interrupted();
    open = false;
    for (std::size_t t = 0; t < texts.size(); ++t) {
      if (step >= texts[t].places.size()) continue;
      open = true;
      for (std::size_t b = 0; b < beams[t].beginnings.size(); ++b) {
        runner.add(job_of(texts[t], beams[t].beginnings[b].ids, {texts[t].places[step]}, options,
                          [&, &beam = beams[t], b](std::size_t /*row*/, auto logits) {
                            const std::vector<Filling> next = likeliest(logits, options, width);
                            const std::lock_guard lock(offering);
                            beam.offer(b, next, width);
                          }));
      }
    }
    runner.run();
    for (std::size_t t = 0; t < texts.size(); ++t) {
      if (step < texts[t].places.size()) beams[t].advance();
    }
  }
  for (std::size_t t = 0; t < texts.size(); ++t) {
    out[t].joint = std::move(beams[t].beginnings);
    if (std::ssize(out[t].joint) > options.top_k)
      out[t].joint.resize(static_cast<std::size_t>(options.top_k));
  }
}

/// The token that is drawn for a mask.
TokenId draw(std::span<const double> logits, const FillOptions& options, double uniform) {
  const SamplingOptions sampling{.do_sample = true, .temperature = options.temperature};
  if (options.targets.empty()) return choose_token(logits, sampling, uniform);
  std::vector<double> allowed(logits.size(), -std::numeric_limits<double>::infinity());
  for (const TokenId id : options.targets)
    allowed[static_cast<std::size_t>(id)] = logits[static_cast<std::size_t>(id)];
  return choose_token(allowed, sampling, uniform);
}

/// Where a chain is, and how often it was where.
struct Chain {
  std::vector<TokenId> ids;  ///< one a mask; in the first sweep those that are drawn
  std::map<std::vector<TokenId>, Index> visits;
};

/// Draws the mask `place` of every text that has one, given the others; in the first sweep later
/// ones are still masked.
void draw_place(JobRunner& runner, std::span<const MaskedText> texts, Index sweep,
                std::size_t place, const FillOptions& options, std::vector<Chain>& chains) {
  for (std::size_t t = 0; t < texts.size(); ++t) {
    const MaskedText& text = texts[t];
    if (place >= text.places.size()) continue;
    std::vector<TokenId>& ids = chains[t].ids;
    const auto at = static_cast<std::size_t>(text.places[place]);
    if (sweep > 0) ids[place] = text.sentence.ids[at];
    const double uniform =
        uniform_at(RandomStream(options.seed, "fill", text.id), sweep, static_cast<Index>(place));
    runner.add(job_of(text, ids, {text.places[place]}, options,
                      [&options, &ids, place, uniform](std::size_t /*row*/, auto logits) {
                        const TokenId id = draw(logits, options, uniform);
                        if (place == ids.size()) ids.push_back(id);
                        ids[place] = id;
                      }));
  }
  runner.run();
}

/// The most frequent first.
std::vector<JointFilling> most_visited(const Chain& chain, const FillOptions& options) {
  std::vector<JointFilling> out;
  for (const auto& [ids, count] : chain.visits) {
    const double share = static_cast<double>(count) / static_cast<double>(options.sweeps);
    out.push_back({ids, std::log(share)});
  }
  std::ranges::stable_sort(out, std::greater<>(), &JointFilling::log_probability);
  if (std::ssize(out) > options.top_k) out.resize(static_cast<std::size_t>(options.top_k));
  return out;
}

void fill_gibbs(JobRunner& runner, std::span<const MaskedText> texts, const FillOptions& options,
                std::vector<FilledText>& out) {
  std::vector<Chain> chains(texts.size());
  std::size_t most = 0;
  for (const MaskedText& text : texts) most = std::max(most, text.places.size());
  for (Index sweep = 0; sweep < options.sweeps; ++sweep) {
    for (std::size_t place = 0; place < most; ++place) {
      throw_if_interrupted();
      draw_place(runner, texts, sweep, place, options, chains);
    }
    for (Chain& chain : chains) ++chain.visits[chain.ids];
  }
  for (std::size_t t = 0; t < texts.size(); ++t) out[t].joint = most_visited(chains[t], options);
}

}  // namespace

NameTable<JointFill> joint_fill_names() { return kJointNames; }

std::vector<Index> places_of(const Sentence& sentence, TokenId mask) {
  std::vector<Index> places;
  for (Index i = sentence.prefix; i < sentence.size() - sentence.suffix; ++i) {
    if (sentence.ids[static_cast<std::size_t>(i)] == mask) places.push_back(i);
  }
  return places;
}

void check_filling(const model::Design& design) {
  if (design.streams == model::Streams::kTwo)
    throw InputError("a model of two streams, expected one of one stream");
  if (design.head.kind != model::HeadKind::kMasked)
    throw InputError("a model without a masked head, expected one");
}

std::vector<FilledText> fill(const model::Model& model, std::span<const MaskedText> texts,
                             const FillOptions& options) {
  MASQUE_CHECK(options.top_k >= 1 && options.sweeps >= 1 && options.temperature > 0);
  std::vector<FilledText> out(texts.size());
  JobRunner runner(model, options.batch_tokens);
  switch (options.joint) {
    case JointFill::kNone: fill_apart(runner, texts, options, out); break;
    case JointFill::kLeftToRight: fill_beam(runner, texts, 1, options, out); break;
    case JointFill::kBeam: fill_beam(runner, texts, options.num_beams, options, out); break;
    case JointFill::kGibbs: fill_gibbs(runner, texts, options, out); break;
  }
  return out;
}

}  // namespace masque::probe
