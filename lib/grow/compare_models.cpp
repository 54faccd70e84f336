#include "grow/compare_models.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/random/random.hpp"
#include "model/masks.hpp"

namespace masque::grow {

namespace {

/// Keeps logits and states of one sequence as doubles.
class KeptResults : public model::Observer {
 public:
  void hidden_states(Index, Index state, MatrixView<const float> rows) override {
    keep(states(state), rows);
  }
  void hidden_states(Index, Index state, MatrixView<const double> rows) override {
    keep(states(state), rows);
  }
  void logits(Index, Index first, MatrixView<const float> rows) override { put(first, rows); }
  void logits(Index, Index first, MatrixView<const double> rows) override { put(first, rows); }

  std::vector<std::vector<double>> all_states;
  std::vector<double> all_logits;

 private:
  std::vector<double>& states(Index state) {
    const auto at = static_cast<std::size_t>(state);
    if (at >= all_states.size()) all_states.resize(at + 1);
    return all_states[at];
  }
  template <class T>
  static void keep(std::vector<double>& to, MatrixView<const T> rows) {
    to.clear();
    for (Index i = 0; i < rows.rows; ++i)
      to.insert(to.end(), rows.row_span(i).begin(), rows.row_span(i).end());
  }
  template <class T>
  void put(Index first, MatrixView<const T> rows) {
    const auto begin = static_cast<std::size_t>(first * rows.columns);
    all_logits.resize(
        std::max(all_logits.size(), begin + static_cast<std::size_t>(rows.rows * rows.columns)));
    for (Index i = 0; i < rows.rows; ++i)
      std::ranges::copy(rows.row_span(i), all_logits.begin() + static_cast<std::ptrdiff_t>(
                                                                   (first + i) * rows.columns));
  }
};

/// The mask of words of two tokens, where the mask of `model` needs words.
std::function<mask::Mask(std::span<const TokenId>)> drawn_words(const model::Model& model) {
  const auto mask = model::open_mask(model.design());
  if (!mask) return {};
  return [mask = *mask](std::span<const TokenId> ids) {
    const Index n = std::ssize(ids);
    std::vector<Index> words(static_cast<std::size_t>(n / 2), 2);
    if (n % 2 != 0) words.push_back(1);
    return mask.closed(words, 0).bind_sequence(n);
  };
}

/// NaN, where there is one, is the largest.
void raise(double& largest, double value) {
  if (!(value <= largest)) largest = value;
}

}  // namespace

ModelComparison::ModelComparison(const ComparedModel& first, const ComparedModel& second)
    : first_(first), second_(second) {
  const model::Design& a = first.model.design();
  const model::Design& b = second.model.design();
  if (a.vocab_size != b.vocab_size) {
    throw UsageError(fmt::format("vocabularies of {} and {} tokens, expected the same",
                                 a.vocab_size, b.vocab_size));
  }
  if (a.head.kind != b.head.kind)
    throw UsageError("heads of different kinds, expected the same kind");
  logits_ = a.head.kind != model::HeadKind::kNone;
  if (logits_) result_.logits = 0;
  same_layers_ = a.num_hidden_layers == b.num_hidden_layers;
  if ((same_layers_ || !logits_) && b.hidden_size % a.hidden_size == 0) {
    copies_ = b.hidden_size / a.hidden_size;
    result_.states = 0;
  }
}

void ModelComparison::add(std::span<const TokenId> ids, std::span<const Index> segments) {
  if (ids.empty()) return;
  model::Request request;
  request.hidden_states = true;
  request.logits = logits_;
  request.all_rows = logits_;
  KeptResults a;
  KeptResults b;
  const auto run = [&](const ComparedModel& one, KeptResults& results) {
    model::SequenceParts parts{.segments = segments};
    if (one.mask_of) parts.mask = one.mask_of(ids);
    model::Batch batch;
    batch.add(ids, parts);
    one.model.run(batch, request, &results);
  };
  run(first_, a);
  run(second_, b);
  ++result_.sequences;
  result_.tokens += ids.size();
  if (result_.logits) {
    MASQUE_CHECK(a.all_logits.size() == b.all_logits.size());
    for (std::size_t i = 0; i < a.all_logits.size(); ++i) {
      raise(result_.largest_logit, std::abs(a.all_logits[i]));
      raise(*result_.logits, std::abs(a.all_logits[i] - b.all_logits[i]));
    }
  }
  if (!result_.states) return;
  const auto copies = static_cast<std::size_t>(copies_);
  const auto compare = [&](const std::vector<double>& own, const std::vector<double>& other) {
    MASQUE_CHECK(other.size() == own.size() * copies);
    for (std::size_t i = 0; i < other.size(); ++i) {
      raise(result_.largest_state, std::abs(own[i / copies]));
      raise(*result_.states, std::abs(own[i / copies] - other[i]));
    }
  };
  for (std::size_t s = 0; same_layers_ && s + 1 < a.all_states.size(); ++s)
    compare(a.all_states[s], b.all_states[s]);
  if (!logits_) compare(a.all_states.back(), b.all_states.back());
}

ModelDifference compare_on_drawn_tokens(const model::Model& first, const model::Model& second,
                                        std::uint64_t seed) {
  constexpr Index kSequences = 4;
  constexpr Index kMostTokens = 64;
  const model::Design& design = first.design();
  const Index limit = design.max_position_embeddings;
  const Index most = limit > 0 ? std::min(limit, kMostTokens) : kMostTokens;
  ModelComparison comparison({first, drawn_words(first)}, {second, drawn_words(second)});
  Draw draw(seed, "tokens of a comparison");
  for (Index i = 1; i <= kSequences; ++i) {
    std::vector<TokenId> ids;
    while (std::ssize(ids) < std::max<Index>(1, most * i / kSequences)) {
      const Index id = draw.below(design.vocab_size);
      // Some families count positions by what is no padding.
      if (design.vocab_size > 1 && id == design.pad_token_id) continue;
      ids.push_back(static_cast<TokenId>(id));
    }
    comparison.add(ids, {});
  }
  return comparison.result();
}

}  // namespace masque::grow
