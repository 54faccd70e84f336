#include "evaluate/score/model_kinds.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "evaluate/score/score_leak.hpp"
#include "model/masks.hpp"

namespace masque::evaluate {

namespace {

using model::HeadKind;
using model::Streams;

std::string_view head_name(HeadKind kind) {
  switch (kind) {
    case HeadKind::kNone: return "no head";
    case HeadKind::kMasked: return "a masked head";
    case HeadKind::kCausal: return "a causal head";
    case HeadKind::kEnergy: return "energies";
    case HeadKind::kText: return "a regression head";
    case HeadKind::kDiscriminator: break;
  }
  return "a discriminator";
}

}  // namespace

ScoreKind default_kind(const model::Design& design, const model::ModelOptions& options) {
  switch (design.head.kind) {
    case HeadKind::kDiscriminator: return ScoreKind::kElectra;
    case HeadKind::kEnergy: return ScoreKind::kElectric;
    case HeadKind::kText: return ScoreKind::kMaskless;
    case HeadKind::kCausal:
      return design.streams == Streams::kTwo ? ScoreKind::kPll : ScoreKind::kCausal;
    case HeadKind::kMasked: {
      if (design.streams == Streams::kTowers) return ScoreKind::kTta;
      const bool fixed = options.keys ? *options.keys == mask::KeySource::kInput
                                      : design.streams == Streams::kFixedKeys;
      const bool blank = options.query ? *options.query == mask::QueryStart::kPosition
                                       : design.streams == Streams::kFixedKeys;
      return fixed && blank ? ScoreKind::kTta : ScoreKind::kPll;
    }
    case HeadKind::kNone: break;
  }
  throw InputError(
      fmt::format("{}, expected a head that predicts tokens", model::missing_head(design)));
}

void check_reads_one_text(const model::Design& design) {
  if (design.variants.latent)
    throw InputError(
        "the model has latent bottlenecks, expected a model without; lm-write latent reads it");
}

void check_kind(ScoreKind kind, const model::Design& design, const model::ModelOptions& options) {
  const HeadKind head = design.head.kind;
  check_reads_one_text(design);
  if (design.streams == Streams::kTwo) {
    if (options.keys || options.query) {
      throw UsageError(fmt::format("{} and {} are not supported for models of two streams",
                                   field("kv"), field("query")));
    }
    if (model::open_mask(design, options.masks)) {
      throw UsageError(fmt::format(
          "{}: the model has two streams, expected a mask that depends on neither words nor a seed",
          field("mask")));
    }
  }
  const bool own =
      head == HeadKind::kMasked || (head == HeadKind::kCausal && design.streams == Streams::kTwo);
  const auto refuse = [&](std::string_view expected) {
    throw InputError(fmt::format("{} {}: the model has {}, expected {}", field("kind"),
                                 kind_name(kind), head_name(head), expected));
  };
  if (kind == ScoreKind::kElectra) {
    if (head != HeadKind::kDiscriminator) refuse("a discriminator");
    return;
  }
  if (kind == ScoreKind::kElectric) {
    if (head != HeadKind::kEnergy) refuse("energies (an Electric model)");
    return;
  }
  if (kind == ScoreKind::kMaskless) {
    if (head != HeadKind::kText)
      refuse("a regression head (lm-train classify with problem_type regression)");
    return;
  }
  if (design.head.shifted && (kind == ScoreKind::kCausal || kind == ScoreKind::kTta)) {
    throw InputError(
        fmt::format("{} {}: the model predicts each token from the position before "
                    "it, expected another kind",
                    field("kind"), kind_name(kind)));
  }
  if (kind == ScoreKind::kCausal) {
    if (head != HeadKind::kCausal && !own) refuse("a head that predicts tokens");
    // Two streams get masks of their own that are causal.
    if (design.streams != Streams::kTwo) ScoreLeak(kind, design, options).start();
    return;
  }
  if (!own) refuse("a masked head");
  if (kind == ScoreKind::kMdlm && design.streams == Streams::kTwo) {
    throw InputError(fmt::format("{} mdlm: the model has two streams, expected a model with one",
                                 field("kind")));
  }
  if (kind != ScoreKind::kTta) return;
  if (design.streams == Streams::kTwo) {
    throw InputError(fmt::format(
        "{} tta: the query stream reads a content stream that has read the token, expected a T-TA",
        field("kind")));
  }
  ScoreLeak(kind, design, options).start();
}

}  // namespace masque::evaluate
