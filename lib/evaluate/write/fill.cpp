#include "evaluate/write/fill.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>

#include "base/error.hpp"
#include "base/thread/interrupt.hpp"
#include "evaluate/score/batching.hpp"
#include "evaluate/score/model_kinds.hpp"
#include "evaluate/write/masked_generation.hpp"
#include "evaluate/write/sampling.hpp"

namespace masque::evaluate {

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
  const kernel::LogSum whole = log_sum(logits);
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
struct LongerFilling {
  std::size_t beginning = 0;
  TokenId id = 0;
  double log_probability = 0;
};

/// The likeliest beginnings of a text's fillings, which is what a beam keeps of them.
struct FillBeam {
  std::vector<JointFilling> beginnings = std::vector<JointFilling>(1);
  std::vector<LongerFilling> next;  ///< a heap: the first is the least likely one

  bool before(const LongerFilling& a, const LongerFilling& b) const {
    if (a.log_probability != b.log_probability) return a.log_probability > b.log_probability;
    const auto& first = beginnings[a.beginning].ids;
    const auto& second = beginnings[b.beginning].ids;
    return first != second ? first < second : a.id < b.id;
  }
  auto order() const {
    return [this](const LongerFilling& a, const LongerFilling& b) { return before(a, b); };
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
    for (const LongerFilling& l : next) {
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
  std::vector<FillBeam> beams(texts.size());
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

/// The drafts of texts, whose draws have a stream of their own.
std::vector<Draft> drafts_of(std::span<const MaskedText> texts, const FillOptions& options) {
  std::vector<Draft> drafts;
  drafts.reserve(texts.size());
  for (const MaskedText& text : texts)
    drafts.emplace_back(text, 0, RandomStream(options.seed, "fill", text.id));
  return drafts;
}

MaskedGenerateOptions generation_of(MaskedWay how, const FillOptions& options) {
  MaskedGenerateOptions out;
  out.how = how;
  out.sampling = {.do_sample = how == MaskedWay::kGibbs, .temperature = options.temperature};
  out.sweeps = options.sweeps;
  out.writer = {.targets = options.targets,
                .never = {},
                .batch_tokens = options.batch_tokens,
                .mask_of = options.mask_of};
  return out;
}

void fill_left_to_right(const model::Model& model, std::span<const MaskedText> texts,
                        const FillOptions& options, std::vector<FilledText>& out) {
  std::vector<Draft> drafts = drafts_of(texts, options);
  const MaskedGenerateOptions way = generation_of(MaskedWay::kLeftToRight, options);
  write_masks(
      model, [&](const Draft& draft, Index pass) { return next_pass(way, draft, pass); },
      way.writer, drafts);
  for (std::size_t t = 0; t < texts.size(); ++t) {
    JointFilling filling{.ids = drafts[t].tokens};
    for (const double x : drafts[t].log_probabilities) filling.log_probability += x;
    out[t].joint.push_back(std::move(filling));
  }
}

/// How often a chain was where at the end of a sweep.
using Visits = std::map<std::vector<TokenId>, Index>;

/// The most frequent first.
std::vector<JointFilling> most_visited(const Visits& visits, const FillOptions& options) {
  std::vector<JointFilling> out;
  for (const auto& [ids, count] : visits) {
    const double share = static_cast<double>(count) / static_cast<double>(options.sweeps);
    out.push_back({ids, std::log(share)});
  }
  std::ranges::stable_sort(out, std::greater<>(), &JointFilling::log_probability);
  if (std::ssize(out) > options.top_k) out.resize(static_cast<std::size_t>(options.top_k));
  return out;
}

void fill_gibbs(const model::Model& model, std::span<const MaskedText> texts,
                const FillOptions& options, std::vector<FilledText>& out) {
  std::vector<Draft> drafts = drafts_of(texts, options);
  std::vector<Visits> visits(texts.size());
  const MaskedGenerateOptions way = generation_of(MaskedWay::kGibbs, options);
  const NextPass next = [&](const Draft& draft, Index pass) {
    const bool sweep_ends = pass > 0 && pass % draft.masks() == 0;
    if (sweep_ends) ++visits[static_cast<std::size_t>(&draft - drafts.data())][draft.tokens];
    return next_pass(way, draft, pass);
  };
  write_masks(model, next, way.writer, drafts);
  for (std::size_t t = 0; t < texts.size(); ++t) out[t].joint = most_visited(visits[t], options);
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
    throw InputError("the model has two streams, expected a model with one");
  check_reads_one_text(design);
  if (design.head.kind != model::HeadKind::kMasked)
    throw InputError("the model has no masked head, expected a masked language model");
}

std::vector<FilledText> fill(const model::Model& model, std::span<const MaskedText> texts,
                             const FillOptions& options) {
  MASQUE_CHECK(options.top_k >= 1 && options.sweeps >= 1 && options.temperature > 0);
  std::vector<FilledText> out(texts.size());
  JobRunner runner(model, options.batch_tokens);
  switch (options.joint) {
    case JointFill::kNone: fill_apart(runner, texts, options, out); break;
    case JointFill::kLeftToRight: fill_left_to_right(model, texts, options, out); break;
    case JointFill::kBeam: fill_beam(runner, texts, options.num_beams, options, out); break;
    case JointFill::kGibbs: fill_gibbs(model, texts, options, out); break;
  }
  return out;
}

}  // namespace masque::evaluate
