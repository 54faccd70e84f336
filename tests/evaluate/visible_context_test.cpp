// The loss by visible tokens, against single runs of texts whose tokens are hidden by hand.
#include "evaluate/score/visible_context.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "evaluate/score/corrupt.hpp"
#include "mask/bit_matrix.hpp"
#include "mask/builtin.hpp"

namespace masque::evaluate {
namespace {

constexpr TokenId kHiddenToken = 4;

model::ModelOptions seen_options() {
  model::ModelOptions options;
  options.precision = kernel::Precision::kF64;
  options.mask_token_id = kHiddenToken;
  return options;
}

std::unique_ptr<model::Model> open_seen(const std::string& name) {
  return model::open_model(MASQUE_TEST_DATA "/model/" + name, seen_options());
}

/// Texts with a template of two tokens before and one after.
std::vector<Sequence> seen_texts(Index vocab_size) {
  std::vector<Sequence> out;
  for (const Index n : {13, 4, 9}) {
    Sequence& text = out.emplace_back();
    text.number = out.size() + 3;
    text.prefix = 2;
    text.suffix = 1;
    for (Index i = 0; i < n; ++i)
      text.ids.push_back(static_cast<TokenId>(5 + (7 * i + 3 * n) % (vocab_size - 5)));
  }
  return out;
}

/// Which tokens of the text are among the `count` with the smallest numbers; the template's are.
std::vector<bool> seen_tokens(const Sequence& text, Index draw, std::uint64_t seed, Index count) {
  const std::vector<double> numbers =
      selection_numbers(text, seed, "visible tokens " + std::to_string(draw));
  std::vector<bool> seen(text.ids.size(), true);
  for (std::size_t i = 2; i + 1 < seen.size(); ++i) {
    const auto smaller = std::ranges::count_if(numbers, [&](double x) { return x < numbers[i]; });
    seen[i] = smaller < count;
  }
  return seen;
}

/// log p of token i from those that are seen.
double seen_log_probability(const model::Model& model, const Sequence& text,
                            const std::vector<bool>& seen, Index i) {
  const auto n = static_cast<Index>(seen.size());
  const bool two = model.design().streams == model::Streams::kTwo;
  const bool tta = model.design().streams == model::Streams::kFixedKeys;
  std::vector<TokenId> ids = text.ids;
  model::SequenceParts parts;
  if (two || tta) {
    mask::BitMatrix content(n, n), query(n, n);
    for (Index q = 0; q < n; ++q) {
      for (Index k = 0; k < n; ++k) {
        if (seen[static_cast<std::size_t>(k)]) {
          content.set(q, k);
          query.set(q, k);
        }
        if (q == k) content.set(q, k);
      }
    }
    parts.mask = mask::from_bits(two ? content : query);
    if (two) parts.query_mask = mask::from_bits(query);
  } else {
    for (std::size_t k = 0; k < ids.size(); ++k) {
      if (!seen[k]) ids[k] = kHiddenToken;
    }
  }
  model::Batch batch;
  batch.add(ids, parts);
  model::Request request;
  request.rows = {i};
  request.targets = {text.ids[static_cast<std::size_t>(i)]};
  return model.run(batch, request).front();
}

}  // namespace

TEST_CASE("the loss by visible tokens is that of tokens hidden by hand") {
  for (const char* name : {"bert", "tta", "xlnet"}) {
    CAPTURE(name);
    const auto model = open_seen(name);
    const Index vocab_size = model->design().vocab_size;
    VisibleContextRequest request;
    request.visible = {3, 0, 1, 8, 40};
    request.draws = 2;
    request.mask = kHiddenToken;
    request.seed = 5;
    VisibleContext context(*model, seen_options(), request);
    for (const Sequence& text : seen_texts(vocab_size)) context.add(text);
    context.flush();
    const std::vector<VisibleContextRow> rows = context.rows();
    std::size_t whole = 0;
    for (const VisibleContextRow& row : rows) {
      CAPTURE(row.visible);
      CAPTURE(row.distance);
      double loss = 0, count = 0;
      std::uint64_t lines = 0;
      for (const Sequence& text : seen_texts(vocab_size)) {
        const auto size = static_cast<Index>(text.ids.size());
        const double before = count;
        for (Index draw = 0; draw < 2 && row.visible < size - 3; ++draw) {
          const std::vector<bool> seen = seen_tokens(text, draw, request.seed, row.visible);
          for (Index i = 2; i + 1 < size; ++i) {
            if (seen[static_cast<std::size_t>(i)]) continue;
            Index nearest = size;
            for (Index k = 2; k + 1 < size; ++k) {
              if (seen[static_cast<std::size_t>(k)]) nearest = std::min(nearest, std::abs(k - i));
            }
            // Largest distances of 1, 2, 4, 8 …
            if (row.distance >= 0 && (nearest == size || nearest > (1 << row.distance) ||
                                      2 * nearest <= (1 << row.distance)))
              continue;
            loss -= seen_log_probability(*model, text, seen, i);
            ++count;
          }
        }
        if (count > before) ++lines;
      }
      CHECK(row.loss.counts == count);
      CHECK(row.loss.lines == lines);
      CHECK(std::abs(row.loss.mean() - loss / count) < 1e-12 * (1 + std::abs(loss / count)));
      if (row.distance < 0) ++whole;
    }
    CHECK(whole == 4);  // no text has more than 40 tokens
    CHECK(rows.front().visible == 3);
    CHECK(rows.front().distance == -1);
  }
}

TEST_CASE("what comes out does not depend on batches") {
  const auto model = open_seen("bert");
  const auto values = [&](Index batch_tokens) {
    VisibleContextRequest request;
    request.visible = {0, 2, 5};
    request.draws = 3;
    request.mask = kHiddenToken;
    request.batch_tokens = batch_tokens;
    VisibleContext context(*model, seen_options(), request);
    for (const Sequence& text : seen_texts(model->design().vocab_size)) context.add(text);
    context.flush();
    std::vector<double> out;
    for (const VisibleContextRow& row : context.rows()) {
      out.push_back(row.loss.values);
      out.push_back(row.loss.value_squares);
    }
    return out;
  };
  CHECK(values(1) == values(100000));
}

TEST_CASE("distances are ranges") {
  const auto text = [](Index distance) {
    return VisibleContextRow{.visible = 1, .distance = distance, .loss = {}}.distance_text();
  };
  CHECK(text(-1) == "all");
  CHECK(text(0) == "1");
  CHECK(text(1) == "2");
  CHECK(text(2) == "3-4");
  CHECK(text(5) == "17-32");
}

TEST_CASE("models whose context is given by places are refused") {
  VisibleContextRequest request;
  request.visible = {1};
  for (const char* name : {"gpt2", "electra_discriminator", "bert_headless", "bert"}) {
    CAPTURE(name);  // bert: without a mask token
    const auto model = open_seen(name);
    CHECK_THROWS_AS(VisibleContext(*model, seen_options(), request), InputError);
  }
}

}  // namespace masque::evaluate
