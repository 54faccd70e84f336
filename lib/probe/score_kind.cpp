#include "probe/score_kind.hpp"

#include <array>
#include <string>

#include <fmt/format.h>

#include "base/error.hpp"

namespace masque::probe {

namespace {

using model::HeadKind;
using model::Streams;

constexpr std::array kKinds{ScoreKind::kPll,          ScoreKind::kPllWordL2r, ScoreKind::kPllWord,
                            ScoreKind::kPllGlobalL2r, ScoreKind::kTta,        ScoreKind::kCausal,
                            ScoreKind::kElectra};
constexpr std::array<std::string_view, kKinds.size()> kNames{
    "pll", "pll-word-l2r", "pll-word", "pll-global-l2r", "tta", "causal", "electra"};

/// Texts of this length stand for all: the masks of models treat positions alike.
constexpr Index kFollowed = 16;

std::string_view head_name(HeadKind kind) {
  switch (kind) {
    case HeadKind::kNone: return "no head";
    case HeadKind::kMasked: return "a masked head";
    case HeadKind::kCausal: return "a causal head";
    case HeadKind::kDiscriminator: break;
  }
  return "a discriminator";
}

std::string_view default_mask(model::DefaultMask mask) {
  switch (mask) {
    case model::DefaultMask::kFull: return "full";
    case model::DefaultMask::kCausal: return "causal";
    case model::DefaultMask::kOthers: break;
  }
  return "tta";
}

FlowRequest flow_of(const model::Design& design, const model::ModelOptions& options) {
  FlowRequest request;
  request.keys = options.keys.value_or(design.streams == Streams::kFixedKeys ? KeySource::kInput
                                                                             : KeySource::kLayer);
  request.query = options.query.value_or(
      design.streams == Streams::kFixedKeys ? QueryStart::kPosition : QueryStart::kToken);
  std::vector<MaskLayer> layers = options.masks;
  if (layers.empty()) layers.push_back({1, parse_mask(default_mask(design.mask))});
  for (const MaskLayer& layer : layers) {
    const Lengths lengths = layer.mask.own_lengths().value_or(Lengths{kFollowed, kFollowed});
    const Index count = layers.size() == 1 ? design.num_hidden_layers : layer.count;
    request.layers.insert(request.layers.end(), static_cast<std::size_t>(count),
                          layer.mask.bind(lengths));
  }
  return request;
}

void refuse_leak(ScoreKind kind, const model::Design& design, const model::ModelOptions& options) {
  FlowRequest request = flow_of(design, options);
  const bool causal = kind == ScoreKind::kCausal;
  request.objective = causal ? Objective::kNext : Objective::kSelf;
  const FlowResult flow = follow_flow(request);
  std::string path;
  if (flow.leak) path = fmt::format(" ({})", path_text(flow.leak->path, false));
  for (Index i = 0; i < flow.reach.rows(); ++i) {
    for (Index j = causal ? i + 1 : i; j < (causal ? flow.reach.columns() : i + 1); ++j) {
      if (!flow.reach.get(i, j)) continue;
      throw InputError(
          fmt::format("--kind {}: position {} of this model reads token {}{}, expected {}",
                      kind_name(kind), i, j, path,
                      causal ? "a causal model, or --mask causal"
                             : "a T-TA, or --kv input --query position --mask tta"));
    }
  }
}

}  // namespace

std::string_view kind_name(ScoreKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

std::span<const ScoreKind> all_kinds() { return kKinds; }

bool is_masked(ScoreKind kind) { return kind <= ScoreKind::kPllGlobalL2r; }

ScoreKind default_kind(const model::Design& design, const model::ModelOptions& options) {
  switch (design.head.kind) {
    case HeadKind::kDiscriminator: return ScoreKind::kElectra;
    case HeadKind::kCausal:
      return design.streams == Streams::kTwo ? ScoreKind::kPll : ScoreKind::kCausal;
    case HeadKind::kMasked: {
      const bool fixed =
          options.keys ? *options.keys == KeySource::kInput : design.streams == Streams::kFixedKeys;
      const bool blank = options.query ? *options.query == QueryStart::kPosition
                                       : design.streams == Streams::kFixedKeys;
      return fixed && blank ? ScoreKind::kTta : ScoreKind::kPll;
    }
    case HeadKind::kNone: break;
  }
  throw InputError("the model has no head, expected one that predicts tokens");
}

void check_kind(ScoreKind kind, const model::Design& design, const model::ModelOptions& options) {
  const HeadKind head = design.head.kind;
  const bool own =
      head == HeadKind::kMasked || (head != HeadKind::kNone && design.streams == Streams::kTwo);
  const auto refuse = [&](std::string_view expected) {
    throw InputError(fmt::format("--kind {}: the model has {}, expected {}", kind_name(kind),
                                 head_name(head), expected));
  };
  if (kind == ScoreKind::kElectra) {
    if (head != HeadKind::kDiscriminator) refuse("a discriminator");
    return;
  }
  if (kind == ScoreKind::kCausal) {
    if (head != HeadKind::kCausal && !own) refuse("a head that predicts tokens");
    // Two streams get masks of their own that are causal.
    if (design.streams != Streams::kTwo) refuse_leak(kind, design, options);
    return;
  }
  if (!own) refuse("a masked head");
  if (kind != ScoreKind::kTta) return;
  if (design.streams == Streams::kTwo) {
    throw InputError(
        "--kind tta: the query stream reads a content stream that has read the token, expected "
        "a T-TA");
  }
  refuse_leak(kind, design, options);
}

}  // namespace masque::probe
