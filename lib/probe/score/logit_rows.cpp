#include "probe/score/logit_rows.hpp"

#include <vector>

namespace masque::probe {

void LogitRowObserver::logits(Index sequence, Index first, MatrixView<const float> rows) {
  std::vector<double> row;
  for (Index i = 0; i < rows.rows; ++i) {
    const std::span<const float> given = rows.row_span(i);
    row.assign(given.begin(), given.end());
    take(sequence, first + i, row);
  }
}

void LogitRowObserver::logits(Index sequence, Index first, MatrixView<const double> rows) {
  for (Index i = 0; i < rows.rows; ++i) take(sequence, first + i, rows.row_span(i));
}

}  // namespace masque::probe
