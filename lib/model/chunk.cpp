#include "model/chunk.hpp"

#include <algorithm>
#include <numeric>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "model/model.hpp"

namespace masque::model {
namespace {

// Enough rows that products run at full speed, and few enough that states stay in the cache.
constexpr Index kFewestRows = 64;
constexpr Index kMostRows = 512;
// Chunks side by side are worth it while the last thread ends at most this much later.
constexpr double kTolerated = 1.15;

// How much longer than ideal it takes when each thread takes the next chunk as soon as it is free.
double imbalance(const std::vector<Chunk>& chunks, int threads) {
  std::vector<Index> busy(static_cast<std::size_t>(threads), 0);
  Index total = 0;
  for (const Chunk& chunk : chunks) {
    *std::min_element(busy.begin(), busy.end()) += chunk.rows;
    total += chunk.rows;
  }
  const auto last = static_cast<double>(*std::max_element(busy.begin(), busy.end()));
  return last * threads / static_cast<double>(std::max<Index>(total, 1));
}

}  // namespace

ChunkPlan cut_batch(const Batch& batch, std::span<const Index> wanted, int threads) {
  ChunkPlan plan;
  const auto total = static_cast<Index>(batch.ids.size());
  // As many chunks for each thread, and at least two.
  const Index rounds = std::max<Index>(2, divide_up(total, kMostRows * threads));
  const Index target = std::max(kFewestRows, divide_up(total, rounds * threads));
  std::size_t next_wanted = 0;
  const Index sequences = batch.sequences();
  for (Index s = 0; s < sequences;) {
    Chunk chunk;
    chunk.first_sequence = s;
    chunk.first_row = batch.begins[static_cast<std::size_t>(s)];
    chunk.first_wanted = static_cast<Index>(next_wanted);
    chunk.begins.push_back(0);
    chunk.wanted_begins.push_back(0);
    while (s < sequences && (chunk.rows == 0 || chunk.rows + batch.length(s) / 2 < target)) {
      chunk.rows += batch.length(s++);
      chunk.begins.push_back(chunk.rows);
      while (next_wanted < wanted.size() && wanted[next_wanted] < chunk.first_row + chunk.rows) {
        chunk.wanted.push_back(wanted[next_wanted++] - chunk.first_row);
      }
      chunk.wanted_begins.push_back(static_cast<Index>(chunk.wanted.size()));
    }
    plan.chunks.push_back(std::move(chunk));
  }
  plan.parallel = threads > 1 && imbalance(plan.chunks, threads) <= kTolerated;
  return plan;
}

std::span<const Index> of_sequence(std::span<const Index> values, std::span<const Index> begins,
                                   Index sequence) {
  if (values.empty()) return {};
  const auto begin = begins[static_cast<std::size_t>(sequence)];
  const auto end = begins[static_cast<std::size_t>(sequence) + 1];
  return values.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
}

namespace {

/// Appends `given` to a list that is empty as long as nobody gives anything.
void join(std::vector<Index>& all, std::span<const Index> given, std::size_t before,
          std::size_t after, Index fallback) {
  if (all.empty() && given.empty()) return;
  MASQUE_CHECK(given.empty() || given.size() == after - before);
  all.resize(before, fallback);
  all.insert(all.end(), given.begin(), given.end());
  all.resize(after, fallback);
}

void join(std::vector<std::vector<TokenId>>& all, std::span<const TokenId> given,
          std::size_t before) {
  if (all.empty() && given.empty()) return;
  all.resize(before);
  all.emplace_back(given.begin(), given.end());
}

void join(std::vector<std::optional<mask::Mask>>& all, const std::optional<mask::Mask>& given,
          std::size_t before) {
  if (all.empty() && !given) return;
  all.resize(before);
  all.push_back(given);
}

}  // namespace

void Batch::add(std::span<const TokenId> sequence) {
  ids.insert(ids.end(), sequence.begin(), sequence.end());
  begins.push_back(static_cast<Index>(ids.size()));
}

Index Batch::add(std::span<const TokenId> sequence, const SequenceParts& parts) {
  const std::size_t before = ids.size();
  const auto count = static_cast<std::size_t>(sequences());
  add(sequence);
  join(positions, parts.positions, before, ids.size(), kNoPosition);
  join(segments, parts.segments, before, ids.size(), 0);
  join(masks, parts.mask, count);
  join(query_masks, parts.query_mask, count);
  join(sources, parts.source, count);
  return static_cast<Index>(before);
}

void Observer::hidden_states(Index, Index, MatrixView<const float>) {}
void Observer::hidden_states(Index, Index, MatrixView<const double>) {}
void Observer::query_states(Index, Index, MatrixView<const float>) {}
void Observer::query_states(Index, Index, MatrixView<const double>) {}
void Observer::attention_rows(Index, Index, Index, const AttentionRows<float>&) {}
void Observer::attention_rows(Index, Index, Index, const AttentionRows<double>&) {}
void Observer::attention(Index, Index, Index, MatrixView<const float>) {}
void Observer::attention(Index, Index, Index, MatrixView<const double>) {}
void Observer::source_attention(Index, Index, Index, MatrixView<const float>) {}
void Observer::source_attention(Index, Index, Index, MatrixView<const double>) {}
void Observer::logits(Index, Index, MatrixView<const float>) {}
void Observer::logits(Index, Index, MatrixView<const double>) {}
void Observer::last_states(Index, Index, MatrixView<const float>) {}
void Observer::last_states(Index, Index, MatrixView<const double>) {}
void Observer::detections(Index, MatrixView<const float>) {}
void Observer::detections(Index, MatrixView<const double>) {}
void Observer::latents(Index, Index, MatrixView<const float>) {}
void Observer::latents(Index, Index, MatrixView<const double>) {}

}  // namespace masque::model
