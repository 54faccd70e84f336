// Given masks of one-pass scores: leaks at the length that has them, and at no other.
#include "evaluate/score/score_leak.hpp"

#include <doctest/doctest.h>

#include "evaluate/score/model_kinds.hpp"
#include "fake_model.hpp"
#include "model/masks.hpp"
#include "support/message.hpp"

namespace masque::evaluate {
namespace {

using model::HeadKind;
using test::message_of;

TEST_CASE("leaks of given masks are found at the lengths that occur") {
  const FakeModel bert(HeadKind::kMasked);
  const auto leak = [&](ScoreKind kind, const char* mask, std::optional<mask::KeySource> keys,
                        std::optional<mask::QueryStart> query, Index length) {
    model::ModelOptions options;
    options.masks = mask::parse_mask_layers(mask);
    options.keys = keys;
    options.query = query;
    check_kind(kind, bert.design(), options);
    ScoreLeak check(kind, bert.design(), options);
    return message_of<UsageError>([&] { check.at(length); });
  };
  const std::string clean = "(nothing thrown)";
  constexpr auto kTta = ScoreKind::kTta;
  constexpr auto kCausal = ScoreKind::kCausal;
  constexpr auto kInput = mask::KeySource::kInput;
  constexpr auto kPosition = mask::QueryStart::kPosition;
  CHECK(leak(kTta, "tta", kInput, kPosition, 5000) == clean);
  // Two layers whose keys are the layer before: the token comes back by way of a neighbour.
  CHECK(leak(kTta, "tta", {}, kPosition, 6) ==
        "kind tta mask 'tta': in a text of 6 tokens position 0 reads token 0 (token 0 -> layer 1 "
        "position "
        "1 -> layer 2 position 0), expected a T-TA, or kv input query position mask tta");
  CHECK(leak(kTta, "tta", {}, kPosition, 1) == clean);
  CHECK(leak(kTta, "strict_causal", {}, kPosition, 512) == clean);
  CHECK(leak(kTta, "strict_causal", {}, kPosition, 513).find("513 tokens") != std::string::npos);
  CHECK(leak(kTta, "tta", kInput, {}, 6).find("position 0 reads token 0,") != std::string::npos);
  // Leaks that only texts of more than 16 tokens have.
  CHECK(leak(kTta, "tta | diagonal & ~prefix(20)", kInput, kPosition, 20) == clean);
  CHECK(leak(kTta, "tta | diagonal & ~prefix(20)", kInput, kPosition, 70)
            .find("of 70 tokens position 20 reads token 20,") != std::string::npos);
  CHECK(leak(kCausal, "causal", {}, {}, 5000) == clean);
  CHECK(leak(kCausal, "causal, window(1) & ~prefix(20) | causal", {}, {}, 20) == clean);
  CHECK(leak(kCausal, "causal, window(1) & ~prefix(20) | causal", {}, {}, 22)
            .find("of 22 tokens position 19 reads token 20,") != std::string::npos);
  // A later key that knows nothing yet brings nothing: the first layer is empty for it.
  CHECK(leak(kCausal, "causal & ~causal, full", {}, kPosition, 6) == clean);
  CHECK(leak(kCausal, "causal, full", {}, kPosition, 6).find("position 0 reads token 1") !=
        std::string::npos);
}

TEST_CASE("two towers: each may read itself and what is behind it, whatever the length") {
  FakeModel model(HeadKind::kMasked);
  model.design_to_change().num_hidden_layers = 4;
  model::set_towers(model.design_to_change());
  const auto leak = [&](ScoreKind kind, const char* mask, Index length) {
    model::ModelOptions options;
    if (*mask != '\0') options.masks = mask::parse_mask_layers(mask);
    check_kind(kind, model.design(), options);
    ScoreLeak check(kind, model.design(), options);
    return message_of<UsageError>([&] { check.at(length); });
  };
  const std::string clean = "(nothing thrown)";
  CHECK(leak(ScoreKind::kTta, "", 5000) == clean);
  CHECK(leak(ScoreKind::kTta, "2*strict_causal, 2*diagonal", 5000) == clean);
  CHECK(leak(ScoreKind::kTta, "full", 6)
            .find("of 6 tokens position 1 reads token 1 (token 1 -> layer 1 position 0)") !=
        std::string::npos);
  CHECK(leak(ScoreKind::kTta, "2*causal, reverse, full", 6)
            .find("of 6 tokens position 0 reads token 0 (token 0 -> layer 3 position 0 -> layer 4 "
                  "position 1)") != std::string::npos);
  CHECK(leak(ScoreKind::kTta, "2*reverse, 2*causal", 513).find("513 tokens") != std::string::npos);
  CHECK(leak(ScoreKind::kCausal, "", 6).find("position 0 reads token 1") != std::string::npos);
}

}  // namespace
}  // namespace masque::evaluate
