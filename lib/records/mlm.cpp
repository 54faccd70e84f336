#include "records/mlm.hpp"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"

namespace masque::records {

namespace {

class Mlm final : public Corruption {
 public:
  Mlm(const MlmOptions& options, TokenTable tokens)
      : options_(options),
        tokens_(std::move(tokens)),
        selection_(options.selection, tokens_),
        mask_below_(share_threshold(options.mask)),
        keep_below_(mask_below_ + share_threshold(options.keep)),
        branch_(options.selection.seed, "droptoken branch"),
        token_(options.selection.seed, "droptoken token") {}

  void apply(Record& record, Scratch& scratch, Tally& tally) const override {
    if (record.labels.present) throw InputError("record is already masked: it has labels");
    const std::uint64_t epoch = options_.draws > 0 ? record.epoch % options_.draws : record.epoch;
    selection_.select(record, options_.fixed_selection ? 0 : epoch, tokens_, scratch, tally);
    const std::size_t n = record.size();
    std::vector<std::int32_t>& labels = record.labels.make(n);
    // A second pass visits the selected ones only, word c for the c-th of them.
    std::vector<std::int32_t>& chosen = scratch.numbers;
    chosen.resize(n + 1);
    std::size_t count = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const bool selected = scratch.flags[i] != 0;
      labels[i] = selected ? record.ids[i] : kNoLabel;
      chosen[count] = static_cast<std::int32_t>(i);
      count += selected ? 1U : 0U;
    }
    scratch.words.resize(count);
    branch_.stream(epoch, record.number).words(count, scratch.words.data());
    Draw draw(token_.stream(epoch, record.number));
    for (std::size_t c = 0; c < count; ++c) {
      TokenId& id = record.ids[static_cast<std::size_t>(chosen[c])];
      id = replaced(id, scratch.words[c], draw, tally);
    }
  }

 private:
  TokenId replaced(TokenId id, std::uint32_t word, Draw& draw, Tally& tally) const {
    if (word >= mask_below_ && word < keep_below_) {
      ++tally.kept;
      return id;
    }
    if (word < mask_below_) {
      if (options_.similar.empty()) {
        ++tally.masked;
        return tokens_.mask;
      }
      const auto at = static_cast<std::size_t>(id);
      if (at < options_.similar.size() && !options_.similar[at].empty()) {
        ++tally.masked;
        const std::vector<TokenId>& similar = options_.similar[at];
        return similar[static_cast<std::size_t>(draw.below(static_cast<Index>(similar.size())))];
      }
    }
    ++tally.random;
    return static_cast<TokenId>(draw.below(tokens_.size));
  }

  MlmOptions options_;
  TokenTable tokens_;
  Selection selection_;
  std::uint64_t mask_below_;
  std::uint64_t keep_below_;
  RandomSource branch_;
  RandomSource token_;
};

}  // namespace

std::unique_ptr<Corruption> make_mlm(const MlmOptions& options, TokenTable tokens) {
  const double sum = options.mask + options.keep + options.random;
  if (!(options.mask >= 0 && options.keep >= 0 && options.random >= 0) ||
      std::abs(sum - 1) > 1e-9) {
    throw UsageError(fmt::format(
        "{}: found {}:{}:{}, expected shares of masked, kept and random that add up to 1",
        field("split"), options.mask, options.keep, options.random));
  }
  if (options.mask > 0 && options.similar.empty() && tokens.mask < 0) {
    throw UsageError(fmt::format("no mask token, expected a {} that has one, {} or another {}",
                                 field("tokenizer"), field("mask_token"), field("split")));
  }
  if (tokens.size <= 0 && (options.random > 0 || !options.similar.empty())) {
    throw UsageError(fmt::format("random tokens need the size of the vocabulary: {} or {}",
                                 field("vocab_size"), field("tokenizer")));
  }
  return std::make_unique<Mlm>(options, std::move(tokens));
}

}  // namespace masque::records
