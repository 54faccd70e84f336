#include "model/chunk.hpp"

#include <algorithm>
#include <numeric>

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
  const Index rounds =
      std::max<Index>(2, (total + kMostRows * threads - 1) / (kMostRows * threads));
  const Index target = std::max(kFewestRows, (total + rounds * threads - 1) / (rounds * threads));
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

}  // namespace masque::model
