// The streams of a model (StreamFlow), layer by layer.
#pragma once

#include <algorithm>
#include <span>

#include "kernel/embedding.hpp"
#include "model/forward/embed_forward.hpp"
#include "model/forward/latent_forward.hpp"
#include "model/forward/layer_forward.hpp"
#include "model/forward/soft_mask_forward.hpp"
#include "model/forward/stream.hpp"
#include "model/role.hpp"

namespace masque::model {

namespace forward {

/// layer_forward of `run`, `l`, `stream`, `source` and `m`, then what a pass that keeps its layers
/// wants of it: `run` has show_layer(l, stream) with kKeeps.
template <class Run>
void one_layer(Run& run, Index l, typename Run::Stream& stream, typename Run::Stream& source,
               MatrixView<const typename Run::Number> m) {
  layer_forward(run, l, stream, source, m);
  if constexpr (Run::kKeeps) run.show_layer(l, stream);
}

/// StreamFlow::kOneStream of `run`, from the embeddings to the last layer.
template <class Run>
void one_stream(Run& run) {
  using T = typename Run::Number;
  auto& content = run.content();
  const Index layers = run.design().num_hidden_layers;
  const Index first_latent = first_latent_layer(run.design());
  run.show_states(0, content);
  for (Index l = 0; l < layers; ++l) {
    if (l >= first_latent) latent_forward(run, l);
    if (l == late_position_layer(run.design()))
      add_late_positions<T>(run.matrix(Role::kLatePositions, 0), content, run.states(l, content));
    if (l + 1 == layers && run.ends_narrow()) {
      // In the last layer only the requested rows are computed.
      auto& selected = run.selected();
      kernel::embedding_forward<T, Index>(run.states(l, content), selected.rows,
                                          run.states(l, selected));
      return one_layer(run, l, selected, content, run.states(l, content));
    }
    one_layer(run, l, content, content, run.states(l, content));
    run.show_states(l + 1, content);
  }
}

/// StreamFlow::kSeparateQueries of `run`: the layers of the selected stream.
template <class Run>
void separate_queries(Run& run) {
  using T = typename Run::Number;
  auto& content = run.content();
  auto& selected = run.selected();
  if (run.starts_from_mask()) {
    const std::vector<TokenId> masks(static_cast<std::size_t>(selected.count()), run.mask_token());
    embed_forward(run, selected, masks);
  } else if (selected.kind == StreamKind::kContent) {
    kernel::copy_rows<T>(run.states(0, content), run.states(0, selected));
  } else {
    kernel::embedding_forward<T, Index>(run.states(0, content), selected.rows,
                                        run.states(0, selected));
  }
  run.show_states(0, selected);
  for (Index l = 0; l < run.design().num_hidden_layers; ++l) {
    auto& source = l == 0 || run.fixed_keys() ? content : selected;
    const Index read = run.fixed_keys() ? 0 : l;
    one_layer(run, l, selected, source, run.states(read, source));
    run.show_states(l + 1, selected);
  }
}

/// StreamFlow::kTwoStreams of `run`: in each layer the query stream, then the content, of which the
/// last layer is left out where nobody looks.
template <class Run>
void two_streams(Run& run) {
  auto& content = run.content();
  auto& query = run.selected();
  const auto g = run.states(0, query);
  const auto start = run.matrix(Role::kQueryStart, 0);
  for (Index i = 0; i < g.rows; ++i) std::copy_n(start.data, g.columns, g.row(i));
  run.show_states(0, content);
  run.show_states(0, query);
  const Index layers = run.design().num_hidden_layers;
  for (Index l = 0; l < layers; ++l) {
    one_layer(run, l, query, content, run.states(l, content));
    run.show_states(l + 1, query);
    if (l + 1 == layers && !run.shows()) continue;
    one_layer(run, l, content, content, run.states(l, content));
    run.show_states(l + 1, content);
  }
}

/// StreamFlow::kTowers of `run`: the content through the first half of the layers, then the
/// selected stream, with the same embeddings, through the second.
template <class Run>
void two_towers(Run& run) {
  using T = typename Run::Number;
  auto& content = run.content();
  auto& second = run.selected();
  const Index layers = run.design().num_hidden_layers;
  const Index half = tower_layers(run.design());
  // Before the first layer writes over the embeddings.
  kernel::copy_rows<T>(run.states(0, content), run.states(half, second));
  run.show_states(0, content);
  for (Index l = 0; l < layers; ++l) {
    auto& tower = l < half ? content : second;
    one_layer(run, l, tower, tower, run.states(l, tower));
    run.show_states(l + 1, tower);
  }
}

/// Calls `visit`(k, row of the first tower, row of the second one) for the k-th of the `wanted`
/// rows of a chunk, ascending, with −1 for what lies beyond its sequence. `begins`: the first rows
/// of the sequences, and the end.
template <class Visit>
void for_each_tower_row(std::span<const Index> wanted, std::span<const Index> begins,
                        const Visit& visit) {
  std::size_t sequence = 0;
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    const Index row = wanted[k];
    while (begins[sequence + 1] <= row) ++sequence;
    visit(static_cast<Index>(k), row > begins[sequence] ? row - 1 : Index{-1},
          row + 1 < begins[sequence + 1] ? row + 1 : Index{-1});
  }
}

/// `last` (wanted rows, 2 · hidden size) ← the last states of both towers of `run` side by side,
/// zeros beyond a sequence, each normed by itself.
template <class Run>
void join_towers(Run& run, MatrixView<typename Run::Number> last) {
  using T = typename Run::Number;
  const Index width = run.design().hidden_size;
  const MatrixView<T> first = run.states(tower_layers(run.design()), run.content());
  const MatrixView<T> second = run.states(run.design().num_hidden_layers, run.selected());
  const MatrixView<T> unnormed = run.unnormed(last);
  for_each_tower_row(run.wanted(), run.content().begins, [&](Index k, Index before, Index after) {
    const auto put = [&](MatrixView<T> from, Index row, T* to) {
      if (row < 0) {
        std::fill_n(to, width, T{});
      } else {
        std::copy_n(from.row(row), width, to);
      }
    };
    put(first, before, unnormed.row(k));
    put(second, after, unnormed.row(k) + width);
  });
  for (const Index column : {Index{0}, width}) {
    const MatrixView<T> from = unnormed.middle_columns(column, width);
    const MatrixView<T> to = last.middle_columns(column, width);
    if (run.final_norm() != nullptr) {
      run.final_norm()->forward(from, to);
    } else if (from.data != to.data) {
      kernel::copy_rows<T>(from, to);
    }
  }
}

}  // namespace forward

/// `last` ← the last states (wanted rows, last_width()), after the final norm, with a detector as
/// soft_mask_forward.hpp says. Of `run`:
///
///   flow(), content(), selected()    the streams; those of `selected` are the wanted rows or all
///   content_ids(), wanted()          tokens and wanted rows of the content
///   ends_narrow()                    one stream: the last layer is for the wanted rows alone
///   fixed_keys(), starts_from_mask(), mask_token()        of separate queries
///   show_states(state, stream), shows()     hidden states or attentions are requested
///   final_norm()                     nullptr: none
///   unnormed(last)                   where states go before that norm
template <class Run>
void streams_forward(Run& run, MatrixView<typename Run::Number> last) {
  using T = typename Run::Number;
  embed_forward(run, run.content(), run.content_ids());
  const bool detects = run.design().variants.detector.has_value();
  if (detects) soft_mask_forward(run);
  switch (run.flow()) {
    case StreamFlow::kOneStream: forward::one_stream(run); break;
    case StreamFlow::kSeparateQueries: forward::separate_queries(run); break;
    case StreamFlow::kTwoStreams: forward::two_streams(run); break;
    case StreamFlow::kTowers: forward::two_towers(run); return forward::join_towers(run, last);
  }
  const bool whole = run.flow() == StreamFlow::kOneStream && !run.ends_narrow();
  auto& end = whole ? run.content() : run.selected();
  const MatrixView<T> states = run.states(run.design().num_hidden_layers, end);
  const MatrixView<T> unnormed = run.unnormed(last);
  if (end.kind == StreamKind::kContent) {
    kernel::embedding_forward<T, Index>(states, run.wanted(), unnormed);
  } else {
    kernel::copy_rows<T>(states, unnormed);
  }
  if (run.final_norm() != nullptr) {
    run.final_norm()->forward(unnormed, last);
  } else if (unnormed.data != last.data) {
    kernel::copy_rows<T>(unnormed, last);
  }
  if (detects) kernel::embedding_add<T, Index>(run.soft_mask().plain.view(), run.wanted(), last);
}

}  // namespace masque::model
