#include "records/mdlm.hpp"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/divide.hpp"
#include "base/error.hpp"

namespace masque::records {

namespace {

constexpr double kLeastRate = 1e-3;

template <class T>
void append_twice(std::vector<T>& values) {
  const std::size_t n = values.size();
  values.resize(2 * n);
  for (std::size_t i = 0; i < n; ++i) values[n + i] = values[i];
}

class Mdlm final : public Corruption {
 public:
  Mdlm(const MdlmOptions& options, TokenTable tokens)
      : options_(options),
        tokens_(std::move(tokens)),
        rates_(options),
        select_(options.seed, "droptoken select") {}

  void apply(Record& record, Scratch& scratch, Tally& tally) const override {
    if (record.labels.present) throw InputError("record is already masked: it has labels");
    if (record.has_weights) throw InputError("record already has weights");
    const std::vector<TokenId> clean = record.ids;
    hide(record, scratch, tally);
    if (options_.block_size > 0) add_clean_half(clean, record);
  }

 private:
  void hide(Record& record, Scratch& scratch, Tally& tally) const {
    const std::size_t n = record.size();
    const std::size_t block =
        options_.block_size > 0 ? options_.block_size : std::max<std::size_t>(n, 1);
    const std::vector<double> rates =
        rates_.of(record, std::max<std::size_t>(divide_up(n, block), 1));
    std::vector<std::int32_t>& labels = record.labels.make(n);
    record.has_weights = true;
    record.weights.assign(n, 0);
    scratch.words.resize(n);
    select_.stream(record.epoch, record.number).words(n, scratch.words.data());
    for (std::size_t i = 0; i < n; ++i) {
      labels[i] = kNoLabel;
      TokenId& id = record.ids[i];
      if (tokens_.is_special(id)) continue;
      ++tally.ordinary;
      const double rate = rates[i / block];
      if (scratch.words[i] >= share_threshold(rate)) continue;
      ++tally.selected;
      ++tally.masked;
      labels[i] = std::exchange(id, tokens_.mask);
      record.weights[i] = 1 / rate;
    }
  }

  void add_clean_half(const std::vector<TokenId>& clean, Record& record) const {
    if (record.mask || record.cu_seqlens.present || record.original.present) {
      throw InputError(fmt::format("record has {}, so {} cannot make two halves of it",
                                   record.mask               ? "mask"
                                   : record.original.present ? "original"
                                                             : "cu_seqlens",
                                   field("block_size")));
    }
    const std::size_t n = clean.size();
    if (!record.pos.present) {
      std::vector<std::int32_t>& pos = record.pos.make(n);
      for (std::size_t i = 0; i < n; ++i) pos[i] = static_cast<std::int32_t>(i);
    }
    record.ids.insert(record.ids.end(), clean.begin(), clean.end());
    for (Numbers* list : {&record.pos, &record.seg, &record.doc, &record.words}) {
      if (list->present) append_twice(list->values);
    }
    record.labels.values.resize(2 * n, kNoLabel);
    record.weights.resize(2 * n, 0);
    record.mask = fmt::format("block_diffusion({})", options_.block_size);
  }

  MdlmOptions options_;
  TokenTable tokens_;
  MdlmRates rates_;
  RandomSource select_;
};

}  // namespace

MdlmRates::MdlmRates(const MdlmOptions& options)
    : batch_size_(options.batch_size), source_(options.seed, "droptoken rate") {}

std::vector<double> MdlmRates::of(const Record& record, std::uint64_t blocks) const {
  MASQUE_CHECK(blocks >= 1);
  const std::uint64_t place = record.place.value_or(record.number);
  // A place counts the epochs in.
  const RandomStream stream = source_.stream(record.place ? 0 : record.epoch, place / batch_size_);
  const PhiloxBlock words = stream.block(0);
  const double u = static_cast<double>((words[0] | std::uint64_t{words[1]} << 32) >> 11) * 0x1p-53;
  const double shift =
      u + static_cast<double>(place % batch_size_) / static_cast<double>(batch_size_);
  std::vector<double> rates(blocks);
  for (std::uint64_t k = 0; k < blocks; ++k) {
    const double s = shift + static_cast<double>(k) / static_cast<double>(blocks);
    rates[k] = kLeastRate + (1 - kLeastRate) * (1 - (s - std::floor(s)));
  }
  return rates;
}

std::unique_ptr<Corruption> make_mdlm(const MdlmOptions& options, TokenTable tokens) {
  if (options.batch_size < 1)
    throw UsageError(fmt::format("{}: found 0, expected at least 1", field("batch_size")));
  if (tokens.mask < 0)
    throw UsageError(fmt::format("no mask token, expected a {} that has one, or {}",
                                 field("tokenizer"), field("mask_token")));
  return std::make_unique<Mdlm>(options, std::move(tokens));
}

}  // namespace masque::records
