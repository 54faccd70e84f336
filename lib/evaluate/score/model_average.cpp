#include "evaluate/score/model_average.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <tuple>

#include <fmt/format.h>

#include "base/error.hpp"
#include "evaluate/score/token_distribution.hpp"

namespace masque::evaluate {

namespace {

/// Predictions at the same rows of each sequence of a batch.
class Predictions final : public model::Observer {
 public:
  Predictions(std::size_t sequences, std::size_t rows)
      : found(sequences, std::vector<TokenDistribution>(rows)) {}

  void logits(Index s, Index first, MatrixView<const float> x) override { add(s, first, x); }
  void logits(Index s, Index first, MatrixView<const double> x) override { add(s, first, x); }

  std::vector<std::vector<TokenDistribution>> found;

 private:
  template <class T>
  void add(Index s, Index first, MatrixView<const T> x) {
    std::vector<TokenDistribution>& own = found[static_cast<std::size_t>(s)];
    for (Index i = 0; i < x.rows; ++i) {
      own[static_cast<std::size_t>(first + i - s * std::ssize(own))] = predict<T>(x.row_span(i));
    }
  }
};

std::vector<std::vector<TokenDistribution>> run(const model::Model& model,
                                                std::span<const Sequence> sequences,
                                                std::span<const Index> rows, Index batch_tokens) {
  std::vector<std::vector<TokenDistribution>> found;
  while (!sequences.empty()) {
    model::Batch batch;
    model::Request request;
    request.logits = true;
    // All have the same length.
    const auto count = std::clamp<std::size_t>(
        static_cast<std::size_t>(batch_tokens / sequences.front().size()), 1, sequences.size());
    for (const Sequence& sequence : sequences.first(count)) {
      const Index begin =
          batch.add(sequence.ids, {sequence.positions, sequence.segments, sequence.mask, {}});
      for (const Index row : rows) request.rows.push_back(begin + row);
    }
    Predictions predictions(count, rows.size());
    model.run(batch, request, &predictions);
    std::ranges::move(predictions.found, std::back_inserter(found));
    sequences = sequences.subspan(count);
  }
  return found;
}

/// Sums of a text's evaluated tokens.
struct Sums {
  double loss = 0;
  double hits = 0;

  void add(const TokenDistribution& p, TokenId token) {
    const auto at = static_cast<std::size_t>(token);
    loss -= p.logarithm[at];
    hits += most_probable(p) == token ? 1 : 0;
  }
};

TokenDistribution mean_of(const std::vector<double>& sum, Index count) {
  TokenDistribution p;
  p.probability.reserve(sum.size());
  p.logarithm.reserve(sum.size());
  for (const double x : sum) {
    p.probability.push_back(x / static_cast<double>(count));
    p.logarithm.push_back(std::log(p.probability.back()));
  }
  return p;
}

}  // namespace

NameTable<PredictedTokens> predicted_token_names() {
  static constexpr std::array<std::pair<std::string_view, PredictedTokens>, 3> kNames{
      {{"visible", PredictedTokens::kVisible},
       {"masked", PredictedTokens::kMasked},
       {"corrupted", PredictedTokens::kCorrupted}}};
  return kNames;
}

ModelAverage::ModelAverage(const model::Model& model, const model::Model* corrected,
                           const AverageRequest& request)
    : model_(model), corrected_(corrected), request_(request) {
  MASQUE_CHECK(!request.samples.empty() && request.samples.front() > 0 &&
               std::is_sorted(request.samples.begin(), request.samples.end()));
  for (const model::Model* one : {&model, corrected}) {
    if (one == nullptr) continue;
    if (one->design().head.kind != model::HeadKind::kMasked) {
      throw InputError("the model has no masked head, expected one");
    }
    if (one->design().vocab_size != model.design().vocab_size) {
      throw InputError(fmt::format("the corrected model has a vocabulary of {} tokens, expected {}",
                                   one->design().vocab_size, model.design().vocab_size));
    }
    const auto shape = [](const model::Design& d) {
      return std::make_tuple(d.family, d.num_hidden_layers, d.hidden_size, d.num_attention_heads);
    };
    if (shape(one->design()) != shape(model.design())) {
      throw InputError("the corrected model has another family or other sizes, expected the same");
    }
  }
  for (const double rate : request.rates) {
    for (const Index k : request.samples) {
      AverageRow row;
      row.rate = rate;
      row.samples = k;
      rows_.push_back(row);
    }
  }
}

Sequence ModelAverage::sample(const Sequence& sequence, std::span<const double> numbers,
                              double rate, Index k) const {
  Sequence out = sequence;
  out.pieces.clear();
  const RandomStream random(request_.seed, fmt::format("average {}", k), sequence.number);
  const auto vocab_size = static_cast<std::uint64_t>(model_.design().vocab_size);
  for (std::size_t i = 0; i < out.ids.size(); ++i) {
    const PhiloxBlock words = random.block(i);
    const bool kept =
        request_.predicted != PredictedTokens::kCorrupted && numbers[i] < request_.evaluated;
    if (kept || numbers[i] > 1 || static_cast<double>(words[0]) * 0x1p-32 >= rate) continue;
    const double share = static_cast<double>(words[1]) * 0x1p-32;
    if (share < request_.mask_share) {
      out.ids[i] = request_.mask;
    } else if (share < request_.mask_share + request_.random_share) {
      out.ids[i] = static_cast<TokenId>(words[2] % vocab_size);
    }
  }
  return out;
}

void ModelAverage::add(const Sequence& original) {
  check_one_stream(original, model_.design());
  const auto numbers = selection_numbers(original, request_.seed, "average");
  Sequence sequence = original;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (request_.predicted == PredictedTokens::kMasked && numbers[i] < request_.evaluated)
      sequence.ids[i] = request_.mask;
  }
  std::vector<Index> rows;
  for (Index i = 0; i < sequence.size(); ++i) {
    if (numbers[static_cast<std::size_t>(i)] < request_.evaluated) rows.push_back(i);
  }
  if (rows.empty()) return;
  const auto count = static_cast<double>(rows.size());
  const auto token = [&](std::size_t r) { return original.ids[static_cast<std::size_t>(rows[r])]; };
  const auto raw = run(model_, {&sequence, 1}, rows, request_.batch_tokens).front();
  const auto corrected = corrected_ != nullptr
                             ? run(*corrected_, {&sequence, 1}, rows, request_.batch_tokens).front()
                             : std::vector<TokenDistribution>();
  Sums raw_sums, corrected_sums;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    raw_sums.add(raw[r], token(r));
    if (!corrected.empty()) corrected_sums.add(corrected[r], token(r));
  }
  const auto vocab_size = static_cast<std::size_t>(model_.design().vocab_size);
  // One sum a rate and evaluated token.
  std::vector<std::vector<std::vector<double>>> sums(
      request_.rates.size(), {rows.size(), std::vector<double>(vocab_size)});
  for (Index k = 1; k <= request_.samples.back(); ++k) {
    std::vector<Sequence> samples;
    samples.reserve(request_.rates.size());
    for (const double rate : request_.rates) samples.push_back(sample(sequence, numbers, rate, k));
    const auto found = run(model_, samples, rows, request_.batch_tokens);
    const auto place = std::find(request_.samples.begin(), request_.samples.end(), k);
    for (std::size_t q = 0; q < samples.size(); ++q) {
      Sums average_sums;
      double from_raw = 0, from_corrected = 0;
      for (std::size_t r = 0; r < rows.size(); ++r) {
        for (std::size_t v = 0; v < vocab_size; ++v) sums[q][r][v] += found[q][r].probability[v];
        if (place == request_.samples.end()) continue;
        const TokenDistribution average = mean_of(sums[q][r], k);
        average_sums.add(average, token(r));
        from_raw += divergence(average, raw[r]);
        if (!corrected.empty()) from_corrected += divergence(average, corrected[r]);
      }
      if (place == request_.samples.end()) continue;
      AverageRow& row = rows_[q * request_.samples.size() +
                              static_cast<std::size_t>(place - request_.samples.begin())];
      row.raw_loss.add(raw_sums.loss, count);
      row.raw_hits.add(raw_sums.hits, count);
      row.average_loss.add(average_sums.loss, count);
      row.average_hits.add(average_sums.hits, count);
      row.from_raw.add(from_raw, count);
      if (corrected.empty()) continue;
      row.corrected_loss.add(corrected_sums.loss, count);
      row.corrected_hits.add(corrected_sums.hits, count);
      row.from_corrected.add(from_corrected, count);
    }
  }
}

}  // namespace masque::evaluate
