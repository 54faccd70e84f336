// The streams of a model (StreamFlow), layer by layer.
#pragma once

#include "kernel/embedding.hpp"
#include "model/forward/embed_forward.hpp"
#include "model/forward/layer_forward.hpp"
#include "model/forward/soft_mask_forward.hpp"
#include "model/forward/stream.hpp"
#include "model/role.hpp"

namespace masque::model {

namespace forward {

template <class Run>
void one_stream(Run& run) {
  using T = typename Run::Number;
  auto& content = run.content();
  const Index layers = run.design().num_hidden_layers;
  run.show_states(0, content);
  for (Index l = 0; l < layers; ++l) {
    if (l + 1 == layers && run.ends_narrow()) {
      // Of the last layer only the requested rows are computed.
      auto& selected = run.selected();
      kernel::embedding_forward<T, Index>(run.states(l, content), selected.rows,
                                          run.states(l, selected));
      return layer_forward(run, l, selected, content, run.states(l, content));
    }
    layer_forward(run, l, content, content, run.states(l, content));
    run.show_states(l + 1, content);
  }
}

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
    layer_forward(run, l, selected, source, run.states(read, source));
    run.show_states(l + 1, selected);
  }
}

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
    layer_forward(run, l, query, content, run.states(l, content));
    run.show_states(l + 1, query);
    if (l + 1 == layers && !run.shows()) continue;
    layer_forward(run, l, content, content, run.states(l, content));
    run.show_states(l + 1, content);
  }
}

}  // namespace forward

/// last ← the last states (wanted rows, hidden size), after the final norm, with a detector as
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
