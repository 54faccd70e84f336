#include "base/error.hpp"
#include "model/model.hpp"

namespace masque::model {

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
void Observer::logits(Index, Index, MatrixView<const float>) {}
void Observer::logits(Index, Index, MatrixView<const double>) {}
void Observer::last_states(Index, Index, MatrixView<const float>) {}
void Observer::last_states(Index, Index, MatrixView<const double>) {}
void Observer::detections(Index, MatrixView<const float>) {}
void Observer::detections(Index, MatrixView<const double>) {}
void Observer::latents(Index, Index, MatrixView<const float>) {}
void Observer::latents(Index, Index, MatrixView<const double>) {}

}  // namespace masque::model
