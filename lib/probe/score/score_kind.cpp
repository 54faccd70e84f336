#include "probe/score/score_kind.hpp"

#include <array>

namespace masque::probe {

namespace {

constexpr std::array kKinds{ScoreKind::kPll,          ScoreKind::kPllWordL2r, ScoreKind::kPllWord,
                            ScoreKind::kPllGlobalL2r, ScoreKind::kTta,        ScoreKind::kCausal,
                            ScoreKind::kElectra};
constexpr std::array<std::string_view, kKinds.size()> kKindNames{
    "pll", "pll-word-l2r", "pll-word", "pll-global-l2r", "tta", "causal", "electra"};

}  // namespace

std::string_view kind_name(ScoreKind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

std::span<const ScoreKind> all_kinds() { return kKinds; }

bool is_masked(ScoreKind kind) { return kind <= ScoreKind::kPllGlobalL2r; }

}  // namespace masque::probe
