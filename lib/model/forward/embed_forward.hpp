// What enters the first layer: words, segments and positions, their norm and projection.
#pragma once

#include <algorithm>
#include <vector>

#include "model/forward/embedding_sum.hpp"
#include "model/forward/forward.hpp"

namespace masque::model {

/// Fills run.states(0, stream) from the tokens `ids`, one for each row of `stream`. Throws
/// InputError for ids, segments and positions beyond the tables. Of `run` also:
///
///   tables()                  the EmbeddingTables
///   embedding_memory(stream)  two matrices: the sum, and its norm; nullptr: nobody keeps it
///   replace_words(stream, x)  puts states of other networks instead of words; of all where there
///                             is no word table
///   acts_on_input(), input_terms(stream, s)  position schemes that do
///   embedding_norm(), embedding_projection() nullptr: none
template <class Run>
void embed_forward(Run& run, typename Run::Stream& stream, std::span<const TokenId> ids) {
  using T = typename Run::Number;
  const Design& design = run.design();
  const Index n = stream.count();
  const auto* const norm = run.embedding_norm();
  const auto* const projection = run.embedding_projection();
  const MatrixView<T> states = run.states(0, stream);
  const auto [kept_sum, kept_norm] = run.embedding_memory(stream);
  Matrix<T> narrow;
  MatrixView<T> x = states;
  if (kept_sum != nullptr) {
    x = resized(*kept_sum, n, design.embedding_size);
  } else if (projection != nullptr) {
    x = resized(narrow, n, design.embedding_size);
  }
  const EmbeddingTables<T> tables = run.tables();
  if (tables.has_words()) embed_words(design, tables, stream, ids, x);
  run.replace_words(stream, x);
  add_segments_and_positions(design, tables, stream, x);
  if (run.acts_on_input()) {
    for (Index s = 0; s < stream.sequences(); ++s) {
      if (stream.count(s) > 0)
        run.input_terms(stream, s)->input(x.middle_rows(stream.begin(s), stream.count(s)));
    }
  }
  const MatrixView<T> normed =
      kept_norm != nullptr ? resized(*kept_norm, n, design.embedding_size) : x;
  if (norm != nullptr) {
    norm->forward(x, normed);
  } else if (kept_norm != nullptr) {
    kernel::copy_rows<T>(x, normed);
  }
  run.drop(DropoutPlace::kEmbedding, 0, stream, normed);
  if (projection != nullptr) {
    projection->forward(normed, states);
  } else if (kept_norm != nullptr) {
    kernel::copy_rows<T>(normed, states);
  }
  add_projected_positions(design, tables, stream, states);
}

}  // namespace masque::model
