// mlm-correct uses what lm-train recorded of the model's training.

#include <algorithm>
#include <filesystem>

#include <doctest/doctest.h>

#include "support/message.hpp"
#include "surgery/correction/correct_checkpoint.hpp"
#include "surgery/correction/correction_settings.hpp"
#include "surgery/example.hpp"

namespace masque::surgery {
namespace {

using test::contains;
using test::message_of;
using test::TempFolder;
using test::write_file;

/// A model with a record of these facts.
struct RecordExample {
  explicit RecordExample(store::Metadata facts) {
    ExampleBert().write(folder);
    for (auto& [name, value] : facts) name = "masque." + name;
    write_file(folder / "in/training.safetensors",
               example_file({{"value.x", DType::kF32, {1}, {0}}}, facts));
  }
  CorrectionReport correct(CorrectionRequest request = {}) const {
    request.write.existing = Existing::kReplace;
    return correct_checkpoint(folder / "in", folder / "out", request);
  }
  bool notes(const std::string& text, const CorrectionRequest& request = {}) const {
    return std::ranges::any_of(correct(request).notes,
                               [&](const std::string& note) { return contains(note, text); });
  }

  TempFolder folder;
};

TEST_CASE("rate and split of the training are those of the correction") {
  const RecordExample masked(
      {{"objective", "mlm"}, {"rate", "0.8"}, {"replace", "mask"}, {"split", "1:0:0"}});
  CHECK(masked.correct().correction.rates ==
        MlmRates{.rate = 0.8, .mask = 1, .keep = 0, .random = 0});
  CHECK(masked.notes("trained with rate=0.8 mask=1 keep=0 random=0"));
  CHECK(corrections_of(masked.folder / "out").at(0).rates.rate == 0.8);
  CorrectionRequest other;
  other.rate = 0.15;
  CHECK(masked.correct(other).correction.rates.rate == 0.15);
  CHECK(masked.notes("but the correction is for other shares", other));
  const RecordExample range({{"objective", "mlm"}, {"rate", "0.2:0.6"}, {"split", "8:1:1"}});
  CHECK(range.correct().correction.rates.rate == doctest::Approx(0.4));
  CHECK(range.correct().correction.rates.mask == doctest::Approx(0.8));
  const RecordExample bad({{"objective", "mlm"}, {"rate", "x"}, {"split", "8:1:1"}});
  CHECK(contains(message_of([&] { bad.correct(); }), "masque.rate 'x'"));
}

TEST_CASE("objectives without [MASK] are noted, and those of no single rate need one") {
  for (const char* objective : {"mae", "electra", "tta"}) {
    const RecordExample example(store::Metadata{{"objective", objective}});
    CHECK(example.notes("no correction is due"));
    CHECK(example.correct().learned_without_mask);
  }
  const RecordExample similar(
      {{"objective", "mlm"}, {"rate", "0.15"}, {"replace", "0123"}, {"split", "0.8:0.1:0.1"}});
  CHECK(similar.notes("selected tokens became similar ones): no correction is due"));
  const RecordExample mixed({{"objective", "unilm"}, {"rate", "0.15"}, {"split", "0.8:0.1:0.1"}});
  CHECK(contains(message_of([&] { mixed.correct(); }),
                 "was trained with the objective unilm, of which no rate is known"));
  CorrectionRequest given;
  given.rate = 0.3;
  CHECK(mixed.correct(given).correction.rates.rate == 0.3);
  const RecordExample classifier(store::Metadata{{"labels", "a"}});
  CHECK(classifier.correct().correction.rates == MlmRates{});
  CHECK(classifier.notes("no record says at which rate"));
  CHECK_FALSE(classifier.notes("no record says at which rate", given));
}

TEST_CASE("the record of a run of two networks is that of its generator, one folder up") {
  const auto report_of = [](const std::string& name, store::Metadata facts) {
    const TempFolder folder;
    ExampleBert().write(folder);
    for (auto& [key, value] : facts) key = "masque." + key;
    write_file(folder / "training.safetensors",
               example_file({{"value.x", DType::kF32, {1}, {0}}}, facts));
    std::filesystem::rename(folder / "in", folder / name);
    CorrectionRequest request;
    request.dry_run = true;
    return correct_checkpoint(folder / name, "", request);
  };
  const store::Metadata facts{{"objective", "electra"}, {"rate", "0.4"}, {"split", "0.8:0.1:0.1"}};
  const MlmRates rates = report_of("generator", facts).correction.rates;
  CHECK(rates.rate == 0.4);
  CHECK(rates.mask == 0.85);
  CHECK(rates.keep == 0.15);
  CHECK(rates.random == 0);
  CHECK(report_of("other", facts).correction.rates == MlmRates{});
  CHECK(report_of("generator", {{"objective", "electric"}, {"rate", "0.4"}}).learned_without_mask);
  CHECK(report_of("generator", {{"objective", "mlm"}, {"rate", "0.4"}}).correction.rates ==
        MlmRates{});
}

}  // namespace
}  // namespace masque::surgery
