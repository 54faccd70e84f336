// rope: pairs of features of queries and keys rotated by place · θ_t, θ_t = base^(−2t/d).
#include "nn/position/rotary_terms.hpp"

namespace masque::nn {

namespace {

const PositionRegistration kRegistration(
    "rope", [](NamedArguments& spelled) -> std::unique_ptr<PositionScheme> {
      return std::make_unique<RotaryScheme>(read_rotary(spelled),
                                            "Su et al. 2021, arXiv:2104.09864");
    });

}  // namespace

}  // namespace masque::nn
