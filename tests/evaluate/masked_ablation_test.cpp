// The loss by mask ratio with changed attention, against single runs of texts corrupted by hand.
#include <algorithm>
#include <cmath>
#include <map>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "evaluate/attention/ablation.hpp"
#include "evaluate/score/corrupt.hpp"
#include "evaluate/score/token_distribution.hpp"

namespace masque::evaluate {
namespace {

constexpr TokenId kMaskToken = 4;

std::unique_ptr<model::Model> open_masked(const std::string& name) {
  model::ModelOptions options;
  options.precision = kernel::Precision::kF64;
  options.mask_token_id = kMaskToken;
  return model::open_model(MASQUE_TEST_DATA "/model/" + name, options);
}

/// Texts with a template of one token before and one after.
std::vector<Sequence> texts(Index vocab_size) {
  std::vector<Sequence> out;
  for (const Index n : {12, 3, 18, 2}) {
    Sequence& text = out.emplace_back();
    text.number = out.size() + 6;
    text.prefix = 1;
    text.suffix = 1;
    for (Index i = 0; i < n; ++i)
      text.ids.push_back(static_cast<TokenId>(5 + (7 * i + 3 * n) % (vocab_size - 5)));
  }
  return out;
}

MaskedAblationRequest request_of(std::vector<double> rates) {
  MaskedAblationRequest request;
  request.rates = std::move(rates);
  request.split = {0.4, 0.3, 0.3};
  request.mask = kMaskToken;
  request.seed = 3;
  return request;
}

MaskedAblation ablated(const model::Model& model, const MaskedAblationRequest& request) {
  MaskedAblation ablation(model, request);
  for (const Sequence& text : texts(model.design().vocab_size)) ablation.add(text);
  ablation.flush();
  return ablation;
}

class LogitRows final : public model::Observer {
 public:
  void logits(Index, Index, MatrixView<const double> x) override { rows = Matrix<double>::copy(x); }
  Matrix<double> rows;
};

/// −log p of each id of `text` where the model reads `ids` instead.
std::vector<double> losses(const model::Model& model, const Sequence& text,
                           const std::vector<TokenId>& ids, const AblationRow& change) {
  model::Batch batch;
  batch.add(ids);
  model::Request request;
  request.logits = true;
  request.all_rows = true;
  request.attention.assign(2, model::AttentionOverride::kIntact);
  for (std::size_t layer = 0; layer < 2; ++layer) {
    if (change.layer.value_or(static_cast<Index>(layer)) == static_cast<Index>(layer))
      request.attention[layer] = change.attention;
  }
  LogitRows found;
  model.run(batch, request, &found);
  std::vector<double> out;
  for (std::size_t i = 0; i < text.ids.size(); ++i) {
    const auto p = predict<const double>(found.rows.view().row_span(static_cast<Index>(i)));
    out.push_back(-p.logarithm[static_cast<std::size_t>(text.ids[i])]);
  }
  return out;
}

}  // namespace

TEST_CASE("ablation by mask ratio: every row is that of texts corrupted by hand") {
  const auto model = open_masked("bert");
  const Index vocab_size = model->design().vocab_size;
  const MaskedAblationRequest request = request_of({0.3, 0.9});
  const MaskedAblation ablation = ablated(*model, request);
  REQUIRE(ablation.rows().size() == 2 * 4 * 7);
  const AblationRow intact;
  std::map<std::optional<Fate>, double> tokens;
  for (const MaskedAblationRow& row : ablation.rows()) {
    CAPTURE(row.rate);
    CAPTURE(row.fate ? std::string(fate_name(*row.fate)) : "all");
    CAPTURE(row.ablation.layer.value_or(-1));
    CAPTURE(static_cast<int>(row.ablation.attention));
    double loss = 0, gap = 0, count = 0;
    std::uint64_t lines = 0;
    for (const Sequence& text : texts(vocab_size)) {
      const auto numbers = selection_numbers(text, request.seed, "ablation");
      const auto fates = fates_of(text, request.split, request.seed);
      const RandomStream stream(request.seed, "ablation fates", text.number);
      std::vector<TokenId> ids = text.ids;
      for (std::size_t i = 1; i + 1 < ids.size(); ++i) {
        if (numbers[i] >= row.rate) continue;
        if (fates[i] == Fate::kMask) ids[i] = kMaskToken;
        if (fates[i] == Fate::kRandom)
          ids[i] =
              static_cast<TokenId>(stream.block(i)[1] % static_cast<std::uint64_t>(vocab_size));
      }
      const auto changed = losses(*model, text, ids, row.ablation);
      const auto plain = losses(*model, text, ids, intact);
      const double before = count;
      for (std::size_t i = 1; i + 1 < ids.size(); ++i) {
        if (numbers[i] >= row.rate || (row.fate && *row.fate != fates[i])) continue;
        loss += changed[i];
        gap += changed[i] - plain[i];
        ++count;
      }
      if (count > before) ++lines;
    }
    REQUIRE(count > 0);
    tokens[row.fate] = count;
    CHECK(row.ablation.loss.counts == count);
    CHECK(row.ablation.loss.lines == lines);
    CHECK(row.ablation.gap.lines == lines);
    CHECK(row.ablation.loss.mean() == doctest::Approx(loss / count).epsilon(1e-12));
    CHECK(row.ablation.gap.mean() == doctest::Approx(gap / count).epsilon(1e-9).scale(1));
    const bool is_intact = row.ablation.attention == model::AttentionOverride::kIntact;
    CHECK((row.ablation.gap.mean() == 0) == is_intact);
  }
  CHECK(tokens[std::nullopt] == tokens[Fate::kMask] + tokens[Fate::kRandom] + tokens[Fate::kKeep]);
  CHECK(ablation.rows()[0].fate == Fate::kMask);
  CHECK(ablation.rows()[7].fate == Fate::kRandom);
  CHECK(ablation.rows()[27].fate == std::nullopt);
  CHECK(ablation.rows()[27].rate == 0.3);
}

TEST_CASE("ablation by mask ratio: batches and other rates change nothing") {
  const auto model = open_masked("bert");
  MaskedAblationRequest request = request_of({0.9, 0.3});
  const MaskedAblation whole = ablated(*model, request);
  request.batch_tokens = 1;
  const MaskedAblation single = ablated(*model, request);
  request.rates = {0.3};
  const MaskedAblation alone = ablated(*model, request);
  REQUIRE(alone.rows().size() == 28);
  for (std::size_t r = 0; r < 56; ++r) {
    const AblationRow& row = whole.rows()[r].ablation;
    CHECK(row.loss.values == single.rows()[r].ablation.loss.values);
    CHECK(row.gap.value_squares == single.rows()[r].ablation.gap.value_squares);
    if (r >= 28) CHECK(row.loss.values == alone.rows()[r - 28].ablation.loss.values);
  }
  // Another seed is another draw.
  request.seed = 4;
  CHECK(ablated(*model, request).rows()[21].ablation.loss.values !=
        alone.rows()[21].ablation.loss.values);
}

TEST_CASE("ablation by mask ratio: fates have their shares, and those of none have no rows") {
  Sequence text;
  text.number = 5;
  text.ids.resize(20000);
  const std::array<double, 3> split{0.8, 0.15, 0.05};
  const auto fates = fates_of(text, split, 1);
  for (const Fate fate : {Fate::kMask, Fate::kRandom, Fate::kKeep}) {
    const double share = split[static_cast<std::size_t>(fate)];
    const auto count = static_cast<double>(std::count(fates.begin(), fates.end(), fate));
    // Five standard deviations.
    CHECK(std::abs(count / 20000 - share) < 5 * std::sqrt(share * (1 - share) / 20000));
  }
  CHECK(fates != fates_of(text, split, 2));
  const auto model = open_masked("bert");
  MaskedAblationRequest request = request_of({1});
  request.split = {0, 0, 1};
  const MaskedAblation kept = ablated(*model, request);
  REQUIRE(kept.rows().size() == 2 * 7);
  CHECK(kept.rows()[0].fate == Fate::kKeep);
  // Tokens of the template are not among them.
  CHECK(kept.rows()[0].ablation.loss.counts == 10 + 1 + 16);
  CHECK(kept.rows()[0].ablation.loss.lines == 3);
  CHECK(kept.rows()[7].ablation.loss.values == kept.rows()[0].ablation.loss.values);
}

TEST_CASE("ablation by mask ratio: models and tokenizers that it is not for") {
  const MaskedAblationRequest request = request_of({0.5});
  for (const char* name : {"gpt2", "bert_headless", "xlnet", "electra_discriminator"}) {
    CAPTURE(name);
    CHECK_THROWS_AS(MaskedAblation(*open_masked(name), request), UsageError);
  }
  MaskedAblationRequest without = request;
  without.mask.reset();
  CHECK_THROWS_AS(MaskedAblation(*open_masked("bert"), without), UsageError);
}

}  // namespace masque::evaluate
