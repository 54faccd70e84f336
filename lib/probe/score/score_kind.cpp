#include "probe/score/score_kind.hpp"

#include <array>

namespace masque::probe {

namespace {

/// In the order of ScoreKind.
constexpr std::array<std::string_view, 7> kKindNames{
    "pll", "pll-word-l2r", "pll-word", "pll-global-l2r", "tta", "causal", "electra"};

}  // namespace

std::string_view kind_name(ScoreKind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

bool is_masked(ScoreKind kind) { return kind <= ScoreKind::kPllGlobalL2r; }

}  // namespace masque::probe
