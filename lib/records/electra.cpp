#include "records/electra.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "records/record_filter.hpp"

namespace masque::records {

TokenSampler::TokenSampler(const std::vector<double>& weights) {
  double total = 0;
  for (const double weight : weights) {
    if (!(weight >= 0) || std::isinf(weight)) {
      throw UsageError(fmt::format("a weight of {}, expected at least 0", weight));
    }
    total += weight;
  }
  if (!(total > 0) || std::isinf(total)) throw UsageError("no token has a weight above 0");
  const std::size_t n = weights.size();
  std::vector<double> share(n);
  std::vector<std::size_t> small;
  std::vector<std::size_t> large;
  for (std::size_t i = 0; i < n; ++i) {
    share[i] = weights[i] / total * static_cast<double>(n);
    (share[i] < 1 ? small : large).push_back(i);
  }
  threshold_.assign(n, std::uint64_t{1} << 32);
  other_.resize(n);
  for (std::size_t i = 0; i < n; ++i) other_[i] = static_cast<TokenId>(i);
  while (!small.empty() && !large.empty()) {
    const std::size_t poor = small.back();
    const std::size_t rich = large.back();
    small.pop_back();
    threshold_[poor] = share_threshold(share[poor]);
    other_[poor] = static_cast<TokenId>(rich);
    share[rich] -= 1 - share[poor];
    if (share[rich] < 1) {
      large.pop_back();
      small.push_back(rich);
    }
  }
  // What rounding leaves over counts as full, unless it never had a weight.
  for (const std::size_t i : small) {
    if (weights[i] > 0 || large.empty()) continue;
    threshold_[i] = 0;
    other_[i] = static_cast<TokenId>(large.front());
  }
}

TokenId TokenSampler::sample(Draw& draw) const {
  const auto i = static_cast<std::size_t>(draw.below(static_cast<Index>(threshold_.size())));
  return draw.word() < threshold_[i] ? static_cast<TokenId>(i) : other_[i];
}

namespace {

std::vector<double> tempered(std::vector<double> weights, double temperature, TokenId size) {
  if (weights.empty()) weights.assign(static_cast<std::size_t>(size), 1);
  for (double& weight : weights) {
    if (weight > 0) weight = std::pow(weight, 1 / temperature);
  }
  return weights;
}

/// Both fields are filled here: what is there would be lost.
void check_unchanged(const Record& record) {
  if (record.labels.present) throw InputError("record already has labels");
  if (record.original.present) throw InputError("record already has original");
}

class Electra final : public Corruption {
 public:
  Electra(const ElectraRecordOptions& options, TokenTable tokens)
      : tokens_(std::move(tokens)),
        selection_(options.selection, tokens_),
        sampler_(tempered(options.weights, options.temperature, tokens_.size)),
        token_(options.selection.seed, "droptoken generator") {}

  void apply(Record& record, Scratch& scratch, Tally& tally) const override {
    check_unchanged(record);
    selection_.select(record, record.epoch, tokens_, scratch, tally);
    const std::size_t n = record.size();
    std::vector<std::int32_t>& original = record.original.make(n);
    std::vector<std::int32_t>& labels = record.labels.make(n);
    Draw draw(token_.stream(record.epoch, record.number));
    for (std::size_t i = 0; i < n; ++i) {
      original[i] = record.ids[i];
      if (scratch.flags[i] != 0) record.ids[i] = sampler_.sample(draw);
      labels[i] = record.ids[i] != original[i] ? 1 : 0;
      if (scratch.flags[i] == 0) continue;
      ++(labels[i] == 1 ? tally.random : tally.kept);
    }
  }

 private:
  TokenTable tokens_;
  Selection selection_;
  TokenSampler sampler_;
  RandomSource token_;
};

class Joined final : public Corruption {
 public:
  Joined(const std::string& path, const TokenTable& tokens) : path_(path) {
    RecordFilter filter{.input = path, .strict = true, .tokens = tokens};
    filter.sink = [](std::string_view) {};
    walk_records(filter, [&](Record& record, std::string&) {
      samples_.resize(std::max<std::size_t>(samples_.size(), record.number + 1));
      samples_[record.number] = record.ids;
    });
  }

  void apply(Record& record, Scratch&, Tally& tally) const override {
    check_unchanged(record);
    const std::size_t n = record.size();
    if (record.number >= samples_.size() || samples_[record.number].size() != n) {
      throw InputError(
          fmt::format("no sample of {} ids in line {} of {}", n, record.number + 1, escape(path_)));
    }
    std::vector<std::int32_t>& original = record.original.make(n);
    std::vector<std::int32_t>& labels = record.labels.make(n);
    for (std::size_t i = 0; i < n; ++i) {
      original[i] = record.ids[i];
      record.ids[i] = samples_[record.number][i];
      labels[i] = record.ids[i] != original[i] ? 1 : 0;
      tally.selected += static_cast<std::uint64_t>(labels[i]);
      tally.random += static_cast<std::uint64_t>(labels[i]);
    }
    tally.ordinary += n;
  }

 private:
  std::string path_;
  std::vector<std::vector<TokenId>> samples_;
};

}  // namespace

std::unique_ptr<Corruption> make_joined_electra(const std::string& path, const TokenTable& tokens) {
  return std::make_unique<Joined>(path, tokens);
}

std::unique_ptr<Corruption> make_electra(const ElectraRecordOptions& options, TokenTable tokens) {
  if (!(options.temperature > 0))
    throw UsageError(fmt::format("{}: expected a number above 0", field("temperature")));
  if (options.weights.empty() && tokens.size <= 0) {
    throw UsageError(fmt::format("a uniform generator needs the size of the vocabulary: {} or {}",
                                 field("vocab_size"), field("tokenizer")));
  }
  return std::make_unique<Electra>(options, std::move(tokens));
}

}  // namespace masque::records
