#include "evaluate/score/score_kind.hpp"

#include <array>

namespace masque::evaluate {

namespace {

constexpr std::array<std::pair<std::string_view, ScoreKind>, 10> kKindNames{
    {{"pll", ScoreKind::kPll},
     {"pll-word-l2r", ScoreKind::kPllWordL2r},
     {"pll-word", ScoreKind::kPllWord},
     {"pll-global-l2r", ScoreKind::kPllGlobalL2r},
     {"tta", ScoreKind::kTta},
     {"causal", ScoreKind::kCausal},
     {"electra", ScoreKind::kElectra},
     {"electric", ScoreKind::kElectric},
     {"maskless", ScoreKind::kMaskless},
     {"mdlm", ScoreKind::kMdlm}}};

}  // namespace

NameTable<ScoreKind> kind_names() { return kKindNames; }

std::string_view kind_name(ScoreKind kind) { return name_in(kind_names(), kind); }

bool reads_one_number(ScoreKind kind) {
  return kind == ScoreKind::kElectra || kind == ScoreKind::kElectric ||
         kind == ScoreKind::kMaskless;
}

bool is_masked(ScoreKind kind) { return kind <= ScoreKind::kPllGlobalL2r; }

}  // namespace masque::evaluate
