#include "model/model.hpp"

namespace masque::model {

void Batch::add(std::span<const TokenId> sequence) {
  ids.insert(ids.end(), sequence.begin(), sequence.end());
  begins.push_back(static_cast<Index>(ids.size()));
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

}  // namespace masque::model
