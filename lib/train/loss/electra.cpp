#include "train/loss/electra.hpp"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/random.hpp"
#include "train/data/objective.hpp"
#include "train/data/record_example.hpp"

namespace masque::train {

namespace {

Example framed(const ElectraItem& item, std::vector<TokenId> ids) {
  Example out;
  out.ids = std::move(ids);
  out.positions = item.positions;
  out.segments = item.segments;
  return out;
}

/// In [0, 1), of 52 bits.
double uniform_of(const PhiloxBlock& block) {
  const std::uint64_t bits = (std::uint64_t{block[0]} << 20) | (block[1] >> 12);
  return static_cast<double>(bits) * 0x1p-52;
}

/// All rows, or the selected ones.
std::vector<Index> rows_of(const ElectraItem& item, bool all) {
  if (!all) return item.rows;
  std::vector<Index> rows(item.ids.size());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<Index>(i);
  return rows;
}

}  // namespace

ElectraSelection::ElectraSelection(const ElectraSelectionOptions& options)
    : tokens_(options.tokens) {
  records::MlmOptions mlm{
      .selection = options.selection, .mask = options.mask, .keep = 1 - options.mask, .random = 0};
  mlm.selection.seed = options.seed;
  if (options.mask > 0 && options.tokens.mask < 0)
    throw UsageError("the tokenizer has no mask token, which the objective needs");
  mlm_ = make_mlm(mlm, options.tokens);
  drop_ = make_dropping(options.drop, options.seed, options.tokens);
}

ElectraItem ElectraSelection::select(const CorpusItem& item, std::uint64_t epoch) const {
  records::Record record = dropped_record(item, epoch, drop_.get());
  ElectraItem out;
  out.ids = record.ids;
  records::Scratch scratch;
  records::Tally tally;
  mlm_->apply(record, scratch, tally);
  out.masked = std::move(record.ids);
  out.positions.assign(record.pos.values.begin(), record.pos.values.end());
  out.segments.assign(record.seg.values.begin(), record.seg.values.end());
  for (std::size_t i = 0; i < out.ids.size(); ++i) {
    if (record.labels.values[i] != records::kNoLabel) out.rows.push_back(static_cast<Index>(i));
    if (!tokens_.is_special(out.ids[i])) out.ordinary.push_back(static_cast<Index>(i));
  }
  return out;
}

std::vector<double> draw_numbers(const CorpusItem& item, std::uint64_t epoch,
                                 std::span<const Index> rows, std::uint64_t seed) {
  const RandomStream stream(seed, fmt::format("generator samples, epoch {}", epoch), item.number);
  std::vector<double> numbers;
  numbers.reserve(rows.size());
  for (const Index row : rows)
    numbers.push_back(uniform_of(stream.block(static_cast<std::uint64_t>(row))));
  return numbers;
}

Example generator_example(const ElectraItem& item) {
  Example out = framed(item, item.masked);
  out.rows = item.rows;
  for (const Index row : item.rows) out.targets.push_back(item.ids[static_cast<std::size_t>(row)]);
  return out;
}

Example drawn_example(const ElectraItem& item, std::span<const TokenId> samples,
                      std::span<const double> weights) {
  Example out = framed(item, item.masked);
  out.rows = item.rows;
  out.targets.assign(samples.begin(), samples.end());
  out.weights.assign(weights.begin(), weights.end());
  return out;
}

std::vector<TokenId> corrupted_ids(const ElectraItem& item, std::span<const TokenId> samples) {
  MASQUE_CHECK(samples.size() == item.rows.size());
  std::vector<TokenId> ids = item.ids;
  for (std::size_t k = 0; k < samples.size(); ++k) {
    ids[static_cast<std::size_t>(item.rows[k])] = samples[k];
  }
  return ids;
}

Example discriminator_example(const ElectraItem& item, std::span<const TokenId> samples, bool all) {
  Example out = framed(item, corrupted_ids(item, samples));
  out.rows = rows_of(item, all);
  for (const Index row : out.rows) {
    const auto i = static_cast<std::size_t>(row);
    out.targets.push_back(out.ids[i] == item.ids[i] ? 0 : 1);
  }
  return out;
}

Example replaced_example(const ElectraItem& item, std::span<const TokenId> samples, bool all) {
  Example out = framed(item, corrupted_ids(item, samples));
  out.rows = rows_of(item, all);
  for (const Index row : out.rows) out.targets.push_back(item.ids[static_cast<std::size_t>(row)]);
  return out;
}

Example cloze_example(const ElectraItem& item) {
  Example out = framed(item, item.ids);
  out.rows = item.ordinary;
  for (const Index row : out.rows) out.targets.push_back(item.ids[static_cast<std::size_t>(row)]);
  return out;
}

std::vector<TokenId> selected_draws(const ElectraItem& item, const NoiseRows& noise) {
  std::vector<TokenId> draws;
  std::size_t k = 0;
  for (const Index row : item.rows) {
    while (item.ordinary[k] != row) ++k;
    draws.push_back(noise.draws[k]);
  }
  return draws;
}

Example energy_example(const ElectraItem& item, const NoiseRows& noise, double rate) {
  MASQUE_CHECK(noise.draws.size() == item.ordinary.size() &&
               noise.losses.size() == item.ordinary.size() &&
               noise.draw_losses.size() == item.ordinary.size());
  Example out = framed(item, corrupted_ids(item, selected_draws(item, noise)));
  out.rows = item.ordinary;
  const double odds = std::log(rate / (1 - rate));
  std::size_t next = 0;  // of the selected
  for (std::size_t k = 0; k < out.rows.size(); ++k) {
    const bool replaced = next < item.rows.size() && item.rows[next] == out.rows[k];
    if (replaced) ++next;
    out.targets.push_back(replaced ? 1 : 0);
    out.offsets.push_back(odds - (replaced ? noise.draw_losses[k] : noise.losses[k]));
  }
  return out;
}

}  // namespace masque::train
