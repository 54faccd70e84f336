#include "records/drop.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"

namespace masque::records {

namespace {

/// The token before other corruptions.
TokenId true_id(const Record& record, std::size_t i) {
  if (record.original.present) return record.original.values[i];
  const bool labelled = record.labels.present && labels_are_own(record);
  return labelled && record.labels.values[i] != kNoLabel ? record.labels.values[i] : record.ids[i];
}

/// Whether the mask is that of packed documents alone.
bool masks_documents(const Record& record) {
  if (!record.cu_seqlens.present || !record.mask) return false;
  std::string mask = *record.mask;
  std::erase(mask, ' ');
  return mask == document_mask(record.cu_seqlens.values);
}

/// Packed documents become shorter; other masks that depend on positions cannot follow.
void check_mask(const Record& record) {
  if (record.original.present && record.original.values.size() != record.size()) {
    throw InputError("original has another length: drop tokens before other corruptions");
  }
  if (!record.mask) return;
  if (masks_documents(record)) return;
  for (const char* free : {"full", "causal", "reverse", "strict_causal", "diagonal", "tta"}) {
    if (*record.mask == free) return;
  }
  throw InputError(fmt::format("the mask '{}' depends on positions: drop tokens before it is made",
                               escape(*record.mask)));
}

void shorten_documents(Record& record, const std::vector<std::uint8_t>& keep) {
  const bool masked = masks_documents(record);
  std::vector<std::int32_t>& ends = record.cu_seqlens.values;
  std::int32_t kept = 0;
  std::size_t at = 0;
  for (std::size_t d = 0; d < ends.size(); ++d) {
    if (ends[d] < 0 || static_cast<std::size_t>(ends[d]) > keep.size()) {
      throw InputError("cu_seqlens: offset outside the ids");
    }
    for (; at < static_cast<std::size_t>(ends[d]); ++at) kept += keep[at];
    ends[d] = kept;
  }
  if (masked) record.mask = document_mask(ends);
}

/// Takes out the tokens with keep == 0 and notes them, after bringing enough of them back.
void take_out(Record& record, std::vector<std::uint8_t>& keep, std::uint64_t min_keep,
              Tally& tally) {
  check_mask(record);
  const std::size_t n = record.size();
  auto left = static_cast<std::uint64_t>(std::accumulate(keep.begin(), keep.end(), std::size_t{0}));
  for (std::size_t i = 0; i < n && left < min_keep; ++i) {
    if (keep[i] != 0) continue;
    keep[i] = 1;
    ++left;
  }
  record.has_dropped = true;
  const std::size_t before = record.dropped.size();
  for (std::size_t i = 0; i < n; ++i) {
    if (keep[i] == 0) record.dropped.push_back({record.position(i), true_id(record, i)});
  }
  tally.dropped += record.dropped.size() - before;
  if (record.cu_seqlens.present) shorten_documents(record, keep);
  record.keep_tokens(keep);
}

class Drop final : public Corruption {
 public:
  Drop(const DropOptions& options, TokenTable tokens)
      : options_(options),
        tokens_(std::move(tokens)),
        threshold_(share_threshold(options.rate)),
        random_(options.seed, "droptoken drop") {}

  void apply(Record& record, Scratch& scratch, Tally& tally) const override {
    const std::size_t n = record.size();
    scratch.words.resize(n);
    random_.stream(record.epoch, record.number).words(n, scratch.words.data());
    scratch.flags.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      const bool special = tokens_.is_special(record.ids[i]);
      tally.ordinary += special ? 0U : 1U;
      scratch.flags[i] = special || scratch.words[i] >= threshold_ ? 1 : 0;
    }
    take_out(record, scratch.flags, options_.min_keep, tally);
    if (!options_.renumber) return;
    std::iota(record.pos.values.begin(), record.pos.values.end(), 0);
    record.position_ids = false;
    record.hidden.clear();
  }

 private:
  DropOptions options_;
  TokenTable tokens_;
  std::uint64_t threshold_;
  RandomSource random_;
};

class Mae final : public Corruption {
 public:
  Mae(const MaeOptions& options, TokenTable tokens)
      : options_(options), tokens_(std::move(tokens)), random_(options.seed, "droptoken mae") {}

  void apply(Record& record, Scratch& scratch, Tally& tally) const override {
    const std::size_t n = record.size();
    scratch.flags.assign(n, 1);
    std::vector<std::size_t> ordinary;
    for (std::size_t i = 0; i < n; ++i) {
      if (!tokens_.is_special(record.ids[i])) ordinary.push_back(i);
    }
    tally.ordinary += ordinary.size();
    const auto count = static_cast<Index>(ordinary.size());
    const auto drop = static_cast<Index>(std::llround(options_.ratio * static_cast<double>(count)));
    Draw draw(random_.stream(record.epoch, record.number));
    const std::vector<bool> dropped = random_subset(count, drop, draw);
    for (std::size_t i = 0; i < ordinary.size(); ++i) {
      if (dropped[i]) scratch.flags[ordinary[i]] = 0;
    }
    take_out(record, scratch.flags, options_.min_keep, tally);
  }

 private:
  MaeOptions options_;
  TokenTable tokens_;
  RandomSource random_;
};

void check_share(double share, const char* name) {
  if (!(share >= 0 && share <= 1)) {
    throw UsageError(fmt::format("{}: expected a number from 0 to 1", field(name)));
  }
}

}  // namespace

std::unique_ptr<Corruption> make_drop(const DropOptions& options, TokenTable tokens) {
  check_share(options.rate, "rate");
  return std::make_unique<Drop>(options, std::move(tokens));
}

std::unique_ptr<Corruption> make_mae(const MaeOptions& options, TokenTable tokens) {
  check_share(options.ratio, "ratio");
  return std::make_unique<Mae>(options, std::move(tokens));
}

}  // namespace masque::records
