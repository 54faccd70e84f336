#include "probe/score/score_kind.hpp"

#include <array>

namespace masque::probe {

namespace {

constexpr std::array<std::pair<std::string_view, ScoreKind>, 8> kKindNames{
    {{"pll", ScoreKind::kPll},
     {"pll-word-l2r", ScoreKind::kPllWordL2r},
     {"pll-word", ScoreKind::kPllWord},
     {"pll-global-l2r", ScoreKind::kPllGlobalL2r},
     {"tta", ScoreKind::kTta},
     {"causal", ScoreKind::kCausal},
     {"electra", ScoreKind::kElectra},
     {"electric", ScoreKind::kElectric}}};

}  // namespace

NameTable<ScoreKind> kind_names() { return kKindNames; }

std::string_view kind_name(ScoreKind kind) { return name_in(kind_names(), kind); }

bool is_masked(ScoreKind kind) { return kind <= ScoreKind::kPllGlobalL2r; }

}  // namespace masque::probe
