// Selection and labels of ELECTRA.
#include <cmath>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "support/message.hpp"
#include "train/loss/electra_loss.hpp"
#include "train_case.hpp"

namespace masque::train {
namespace {

ElectraSelectionOptions settings() {
  ElectraSelectionOptions options;
  options.seed = 5;
  options.tokens = test::token_table();
  return options;
}

TEST_CASE("15 % of the ordinary tokens are selected, 85 % of them hidden") {
  const ElectraSelection selection(settings());
  std::uint64_t selected = 0;
  std::uint64_t masked = 0;
  for (std::uint64_t number = 0; number < 500; ++number) {
    const test::Sequence sequence(number, 102);
    const ElectraItem item = selection.select(sequence.item(), 1);
    CHECK(item.ids == sequence.ids);
    CHECK(item.rows.size() == 15);  // round(0.15 · 100)
    std::size_t next = 0;
    for (std::size_t i = 0; i < item.ids.size(); ++i) {
      const bool chosen = next < item.rows.size() && item.rows[next] == static_cast<Index>(i);
      if (chosen) ++next;
      if (!chosen) {
        CHECK(item.masked[i] == item.ids[i]);
      } else {
        CHECK((item.masked[i] == test::kMaskToken || item.masked[i] == item.ids[i]));
        CHECK_FALSE(settings().tokens.is_special(item.ids[i]));
        masked += item.masked[i] == test::kMaskToken ? 1U : 0U;
      }
    }
    CHECK(next == item.rows.size());
    selected += item.rows.size();
  }
  test::check_rate(masked, selected, 0.85);
}

TEST_CASE("a correct sample is original, in both networks' examples") {
  ElectraItem item;
  item.ids = {2, 10, 11, 12, 13, 3};
  item.masked = {2, 10, 4, 4, 13, 3};
  item.segments = {0, 0, 0, 1, 1, 1};
  item.rows = {2, 3};
  const std::vector<TokenId> samples{11, 77};

  const Example generator = generator_example(item);
  CHECK(generator.ids == item.masked);
  CHECK(generator.rows == std::vector<Index>{2, 3});
  CHECK(generator.targets == std::vector<TokenId>{11, 12});
  CHECK(generator.segments == item.segments);

  const Example all = discriminator_example(item, samples, true);
  CHECK(all.ids == std::vector<TokenId>{2, 10, 11, 77, 13, 3});
  CHECK(all.rows == std::vector<Index>{0, 1, 2, 3, 4, 5});
  CHECK(all.targets == std::vector<TokenId>{0, 0, 0, 1, 0, 0});
  const Example some = discriminator_example(item, samples, false);
  CHECK(some.rows == std::vector<Index>{2, 3});
  CHECK(some.targets == std::vector<TokenId>{0, 1});

  const Example replaced = replaced_example(item, samples, false);
  CHECK(replaced.ids == all.ids);
  CHECK(replaced.targets == std::vector<TokenId>{11, 12});
  CHECK(replaced_example(item, samples, true).targets == item.ids);
}

TEST_CASE("energies: a row is replaced if it was selected, whatever was drawn") {
  ElectraItem item;
  item.ids = {2, 10, 11, 12, 13, 3};
  item.segments = {0, 0, 0, 1, 1, 1};
  item.rows = {2, 4};
  item.ordinary = {1, 2, 3, 4};
  const std::vector<TokenId> draws{70, 11, 72, 77};
  const std::vector<double> draw_losses{5, 0.5, 6, 2}, losses{1, 0.5, 3, 4};
  const NoiseRows noise{draws, draw_losses, losses};
  const Example cloze = cloze_example(item);
  CHECK(cloze.ids == item.ids);
  CHECK(cloze.rows == item.ordinary);
  CHECK(cloze.targets == std::vector<TokenId>{10, 11, 12, 13});
  CHECK(selected_draws(item, noise) == std::vector<TokenId>{11, 77});
  const Example energy = energy_example(item, noise, 0.25);
  CHECK(energy.ids == std::vector<TokenId>{2, 10, 11, 12, 77, 3});
  CHECK(energy.segments == item.segments);
  CHECK(energy.rows == item.ordinary);
  CHECK(energy.targets == std::vector<TokenId>{0, 1, 0, 1});
  const double odds = std::log(1.0 / 3);
  const std::vector<double> expected{-1 + odds, -0.5 + odds, -3 + odds, -2 + odds};
  REQUIRE(energy.offsets.size() == expected.size());
  for (std::size_t k = 0; k < expected.size(); ++k)
    CHECK(energy.offsets[k] == doctest::Approx(expected[k]).epsilon(1e-15));
}

TEST_CASE("dropped tokens leave positions, and what is wrong is refused") {
  ElectraSelectionOptions options = settings();
  options.drop.rate = 0.5;
  const test::Sequence sequence(3, 60);
  const ElectraItem item = ElectraSelection(options).select(sequence.item(), 0);
  REQUIRE(item.positions.size() == item.ids.size());
  CHECK(item.ids.size() < 60);
  for (std::size_t i = 0; i < item.ids.size(); ++i) {
    CHECK(item.ids[i] == sequence.ids[static_cast<std::size_t>(item.positions[i])]);
  }
  options.tokens.mask = -1;
  options.mask = 0;
  CHECK_NOTHROW(ElectraSelection{options});
  options.mask = 0.85;
  CHECK(test::contains(test::message_of<UsageError>([&] { ElectraSelection{options}; }),
                       "no mask token"));
}

}  // namespace
}  // namespace masque::train
