// attn-probe map: the weights of heads as pictures, a page, or arrays.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/thread/parallel.hpp"
#include "commands.hpp"
#include "commands/open_model.hpp"
#include "commands/sequences.hpp"
#include "commands/stack_option.hpp"
#include "draw/figure.hpp"
#include "draw/figure_file.hpp"
#include "draw/head_explorer.hpp"
#include "draw/terminal.hpp"
#include "evaluate/attention/head_maps.hpp"
#include "evaluate/score/dump.hpp"
#include "evaluate/score/sentence.hpp"
#include "store/numpy/array.hpp"
#include "tensor/matrix.hpp"
#include "text/tokenizer.hpp"

namespace masque::attn_probe {

namespace {

// Pictures of attention weights.

/// A head of a page of heads.
struct SmallMap {
  Index layer = 0;
  Index head = 0;
  std::vector<double> cells;  ///< of pooled()
};

/// 1, or the largest weight if normalizers give more.
double greatest(double so_far, const std::vector<double>& values) {
  for (const double value : values) {
    if (std::isfinite(value)) so_far = std::max(so_far, value);
  }
  return so_far;
}

/// The largest weights of `cells` × `cells` parts of the map (fewer if it has fewer rows): a thin
/// line is not lost.
std::vector<double> pooled(MatrixView<const double> weights, Index zoom) {
  const Index rows = divide_up(weights.rows, zoom);
  const Index columns = divide_up(weights.columns, zoom);
  std::vector<double> cells(static_cast<std::size_t>(rows * columns), 0);
  for (Index i = 0; i < weights.rows; ++i) {
    for (Index j = 0; j < weights.columns; ++j) {
      double& cell = cells[static_cast<std::size_t>(i / zoom * columns + j / zoom)];
      if (!(weights.at(i, j) <= cell)) cell = weights.at(i, j);
    }
  }
  return cells;
}

/// The names of the rows and of the columns of a map.
struct MapLabels {
  std::vector<std::string> queries, keys;

  /// The longer side of a map.
  Index size() const { return std::max(std::ssize(queries), std::ssize(keys)); }
};

/// One head, rows are queries, both sides named; cells stand for `zoom` tokens.
draw::Figure head_figure(MatrixView<const double> weights, const MapLabels& labels, Index zoom) {
  const std::vector<double> cells = pooled(weights, zoom);
  const Index rows = divide_up(weights.rows, zoom);
  const Index columns = divide_up(weights.columns, zoom);
  draw::Figure figure;
  figure.heat = {"weight", 0, greatest(0, cells)};
  draw::Panel panel;
  panel.grid = draw::heat_grid(rows, columns, cells, 0, figure.heat.high);
  panel.rows = {.name = "query", .labels = {}, .zoom = zoom};
  panel.columns = {.name = "key", .labels = {}, .zoom = zoom};
  if (zoom == 1) {
    panel.rows.labels = labels.queries;
    panel.columns.labels = labels.keys;
  }
  if (zoom > 1) figure.note = fmt::format("a cell is the largest of {} × {} weights", zoom, zoom);
  figure.panels.push_back(std::move(panel));
  return figure;
}

/// All heads, a row of panels for each layer; `labels` are the tokens, which stand beside cells of
/// one token.
draw::Figure page_figure(const std::vector<SmallMap>& maps, Index zoom, Index heads_per_row,
                         const MapLabels& labels) {
  draw::Figure figure;
  double high = 0;
  for (const SmallMap& map : maps) high = greatest(high, map.cells);
  figure.heat = {"weight", 0, high};
  figure.panels_per_row = heads_per_row;
  figure.panels.reserve(maps.size());
  for (const SmallMap& map : maps) {
    draw::Panel panel;
    panel.name = fmt::format("{}.{}", map.layer, map.head);
    panel.grid = draw::heat_grid(divide_up(std::ssize(labels.queries), zoom),
                                 divide_up(std::ssize(labels.keys), zoom), map.cells, 0, high);
    if (zoom == 1) {
      panel.rows.labels = labels.queries;
      panel.columns.labels = labels.keys;
    }
    panel.rows.zoom = zoom;
    panel.columns.zoom = zoom;
    figure.panels.push_back(std::move(panel));
  }
  figure.note = zoom > 1
                    ? fmt::format("layer.head; rows are queries; a cell is the largest of {} × {}",
                                  zoom, zoom)
                    : "layer.head; rows are queries, columns are keys";
  return figure;
}

// The command.

enum class What { kAttentions, kHiddenStates };

// Cells of a page's panels, and of one head.
constexpr Index kPanelCells = 48;
constexpr Index kHeadCells = 1024;

struct Options {
  commands::OpenModelOptions open;
  commands::SequenceOptions sequences;
  commands::StackOption stack;
  std::optional<std::string> text;
  std::int64_t line = 0;
  std::optional<std::int64_t> layer, head;
  What what = What::kAttentions;
  std::optional<std::string> output;
};

evaluate::HeadChoice choice_of(const Options& o) {
  evaluate::HeadChoice choice;
  if (o.layer) choice.layer = static_cast<Index>(*o.layer);
  if (o.head) choice.head = static_cast<Index>(*o.head);
  choice.of_source = o.stack.of_source();
  return choice;
}

bool ends(const Options& o, std::string_view ending) {
  return o.output && o.output->ends_with(ending);
}

/// Refuses options that cannot be combined, before the model is opened.
void check(const Options& o, const cli::Command& command) {
  const bool states = o.what == What::kHiddenStates;
  const bool array = ends(o, ".npy"), tensors = ends(o, ".safetensors");
  const bool picture = o.output && draw::is_picture_name(*o.output);
  if (o.output && !array && !tensors && !picture && !ends(o, ".html")) {
    throw UsageError(fmt::format(
        "{}: expected a name that ends in .svg .png .html .npy .safetensors", escape(*o.output)));
  }
  if (states && !array && !tensors)
    throw UsageError("--what hidden_states needs -o with a name that ends in .npy or .safetensors");
  if (states && o.head)
    throw UsageError("--head cannot be combined with --what hidden_states: states have no heads");
  if (states && o.stack.of_source())
    throw UsageError("--what hidden_states: found --stack cross, expected encoder or decoder");
  if (!o.output && (!o.layer || !o.head))
    throw UsageError("without -o one head is drawn: choose it with --layer and --head");
  if ((tensors || ends(o, ".html")) && (o.layer || o.head))
    throw UsageError(
        "--layer and --head cannot be combined with .html and .safetensors, which hold everything");
  const commands::StreamOptions& stream = o.sequences.stream;
  if (o.text && (o.sequences.records || o.line != 0 || stream.shard || stream.first_record != 0 ||
                 stream.input.crlf || stream.input.invalid != cli::Invalid::kReplace)) {
    throw UsageError("--text cannot be combined with options for records or lines");
  }
  if (!o.text) commands::check_sequences(o.sequences, command);
}

evaluate::Sequence sequence_of(const Options& o, const commands::OpenedModel& opened,
                               const cli::Command& command, cli::Session& session) {
  if (!o.text) {
    const auto wanted = static_cast<std::uint64_t>(o.line);
    std::uint64_t found = 0;
    bool beyond = false;  // whether a later line was read
    std::optional<evaluate::Sequence> sequence;
    commands::SequenceWork work;
    work.use = [&](evaluate::Sequence&& each, std::string_view) {
      ++found;
      beyond = beyond || each.number > wanted;
      if (each.number == wanted) sequence = std::move(each);
    };
    work.enough = [&] { return sequence.has_value(); };
    const cli::ExitCode code = commands::each_sequence(o.sequences, opened, command, work, session);
    if (!sequence) {
      const bool skipped = code != cli::ExitCode::kDone;
      if (beyond) {
        throw InputError(fmt::format("--line {}: the line {}, expected one with a sequence", o.line,
                                     skipped ? "was skipped" : "is empty"));
      }
      throw InputError(fmt::format("--line {}: found {} sequences{}; lines count from 0", o.line,
                                   found, skipped ? " besides skipped lines" : ""));
    }
    return std::move(*sequence);
  }
  const evaluate::SentenceOptions how = commands::sentence_options(o.sequences, opened, session);
  evaluate::Sentence sentence;
  if (o.stack.pairs()) {
    const auto problem = input_error_message(
        [&] { sentence = commands::encode_decoder_line(*o.text, opened, how); });
    if (problem) throw InputError("--text: " + *problem);
  } else {
    sentence = evaluate::encode_sentence(*opened.tokenizer, *o.text, how);
  }
  const Index longest = opened.model->design().max_position_embeddings;
  if (sentence.size() == 0) throw InputError("--text: no tokens, expected at least one");
  if (longest > 0 && sentence.size() > longest)
    throw InputError(
        fmt::format("--text: {} tokens, expected at most {}", sentence.size(), longest));
  return commands::sequence_of(std::move(sentence), 0, opened);
}

std::vector<std::string> labels_of(const std::vector<TokenId>& ids,
                                   const std::optional<text::Tokenizer>& tokenizer) {
  std::vector<std::string> labels;
  labels.reserve(ids.size());
  for (const TokenId id : ids)
    labels.push_back(tokenizer ? std::string(tokenizer->token(id)) : std::to_string(id));
  return labels;
}

MapLabels map_labels(const Options& o, const commands::OpenedModel& opened,
                     const evaluate::Sequence& sequence) {
  MapLabels labels;
  labels.queries = sequence.pieces.empty() ? labels_of(sequence.ids, {}) : sequence.pieces;
  labels.keys = !o.stack.of_source()      ? labels.queries
                : sequence.pieces.empty() ? labels_of(sequence.source, {})
                                          : labels_of(sequence.source, opened.tokenizer);
  return labels;
}

void write_page(const Options& o, const model::Model& model, const evaluate::Sequence& sequence,
                const MapLabels& labels) {
  const model::Design& design = model.design();
  const Index heads = evaluate::HeadChoice{}.heads(design);
  std::vector<draw::HeadWeights> maps(static_cast<std::size_t>(design.num_hidden_layers * heads));
  evaluate::each_head(model, sequence, choice_of(o),
                      [&](Index layer, Index head, MatrixView<const double> a) {
                        maps[static_cast<std::size_t>(layer * heads + head)] =
                            draw::quantized({a.data, static_cast<std::size_t>(a.rows * a.columns)});
                      });
  draw::write_head_explorer(
      *o.output,
      {fmt::format("{}: {} tokens", o.open.model, sequence.size()), design.num_hidden_layers, heads,
       labels.queries, labels.keys},
      [&](Index layer, Index head) {
        return std::move(maps[static_cast<std::size_t>(layer * heads + head)]);
      });
}

draw::Figure figure_of(const model::Model& model, const evaluate::Sequence& sequence,
                       const evaluate::HeadChoice& choice, const MapLabels& labels,
                       Index most_cells) {
  const model::Design& design = model.design();
  draw::Figure figure;
  if (choice.layer && choice.head) {
    const Index zoom = draw::zoom_for(labels.size(), most_cells);
    evaluate::each_head(model, sequence, choice,
                        [&](Index layer, Index head, MatrixView<const double> a) {
                          figure = head_figure(a, labels, zoom);
                          figure.title = fmt::format("layer {}, head {}", layer, head);
                        });
    return figure;
  }
  const Index zoom = draw::zoom_for(labels.size(), kPanelCells);
  const Index layers = choice.layers(design), heads = choice.heads(design);
  std::vector<SmallMap> maps(static_cast<std::size_t>(layers * heads));
  evaluate::each_head(
      model, sequence, choice, [&](Index layer, Index head, MatrixView<const double> a) {
        const Index row = choice.layer ? 0 : layer, column = choice.head ? 0 : head;
        maps[static_cast<std::size_t>(row * heads + column)] = {layer, head, pooled(a, zoom)};
      });
  return page_figure(maps, zoom, heads, labels);
}

template <class T>
void write_array(const Options& o, const model::Model& model, const evaluate::Sequence& sequence,
                 DType dtype) {
  const model::Design& design = model.design();
  const evaluate::HeadChoice choice = choice_of(o);
  const Index n = sequence.size();
  Shape shape;
  std::vector<T> values;
  const auto put = [&](Index block, MatrixView<const double> rows) {
    T* to = values.data() + block * rows.rows * rows.columns;
    for (Index i = 0; i < rows.rows * rows.columns; ++i) to[i] = static_cast<T>(rows.data[i]);
  };
  const auto size = [](Index count) { return static_cast<std::uint64_t>(count); };
  if (o.what == What::kHiddenStates) {
    const Index states = choice.layer ? 1 : design.num_hidden_layers + 1;
    if (!choice.layer) shape.push_back(size(states));
    shape.insert(shape.end(), {size(n), size(design.hidden_size)});
    values.resize(static_cast<std::size_t>(states * n * design.hidden_size));
    evaluate::each_state(model, sequence, [&](Index state, MatrixView<const double> rows) {
      if (!choice.layer) put(state, rows);
      if (choice.layer && state == *choice.layer) put(0, rows);
    });
  } else {
    const Index layers = choice.layers(design), heads = choice.heads(design);
    if (!choice.layer) shape.push_back(size(layers));
    if (!choice.head) shape.push_back(size(heads));
    const Index keys = choice.of_source ? std::ssize(sequence.source) : n;
    shape.insert(shape.end(), {size(n), size(keys)});
    values.resize(static_cast<std::size_t>(layers * heads * n * keys));
    evaluate::each_head(model, sequence, choice,
                        [&](Index layer, Index head, MatrixView<const double> a) {
                          put((choice.layer ? 0 : layer) * heads + (choice.head ? 0 : head), a);
                        });
  }
  const Bytes bytes = std::as_bytes(std::span<const T>(values));
  store::write_npy(*o.output, dtype, shape, [&](std::uint64_t offset, MutableBytes out) {
    std::memcpy(out.data(), bytes.data() + offset, out.size());
  });
}

void write_tensors(const Options& o, const commands::OpenedModel& opened,
                   const evaluate::Sequence& sequence) {
  evaluate::DumpRequest request;
  request.attentions = o.what == What::kAttentions;
  request.hidden_states = o.what == What::kHiddenStates;
  request.metadata = {
      {"model", o.open.model},
      {"precision", std::string(kernel::precision_name(opened.model->precision()))}};
  for (const commands::Given& g : opened.given) request.metadata.emplace_back(g.name, g.value);
  evaluate::dump(*opened.model, {&sequence, 1}, request, *o.output);
}

cli::ExitCode run(const Options& o, const cli::Command& command, cli::Session& session) {
  session.configure(o.open.common);
  check(o, command);
  const commands::OpenedModel opened =
      commands::open_stack(o.open, o.stack, !o.sequences.records, session);
  const model::Model& model = *opened.model;
  const evaluate::HeadChoice choice = choice_of(o);
  if (o.what == What::kAttentions) evaluate::check_choice(choice, model.design());
  const Index states = model.design().num_hidden_layers;
  if (o.what == What::kHiddenStates && choice.layer && *choice.layer > states) {
    throw UsageError(fmt::format("--layer: found {}, expected 0 to {}", *choice.layer, states));
  }
  const evaluate::Sequence sequence = sequence_of(o, opened, command, session);
  const MapLabels labels = map_labels(o, opened, sequence);
  if (!o.output) {
    const draw::TerminalStyle style{.width = session.terminal_width(),
                                    .unicode = session.takes_utf8(),
                                    .color = session.shows_color()};
    session.print(draw::terminal(
        figure_of(model, sequence, choice, labels, draw::terminal_cells(style)), style));
  } else if (ends(o, ".html")) {
    write_page(o, model, sequence, labels);
  } else if (ends(o, ".safetensors")) {
    write_tensors(o, opened, sequence);
  } else if (ends(o, ".npy")) {
    if (model.precision() == kernel::Precision::kF64) {
      write_array<double>(o, model, sequence, DType::kF64);
    } else {
      write_array<float>(o, model, sequence, DType::kF32);
    }
  } else {
    draw::write_picture(*o.output, figure_of(model, sequence, choice, labels, kHeadCells));
  }
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_map(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand(
      "map", "shows the attention weights of one text: pictures, an interactive page, arrays");
  c.example("attn-probe map bert-base-uncased/ --text 'the cat sat' -o heads.html",
            "an interactive page that holds every weight");
  c.example("attn-probe map bert-base-uncased/ --text 'the cat sat' --layer 3 --head 5",
            "one head in the terminal");
  c.example("attn-probe map gpt2/ -o heads.svg < text", "all heads of the first line");
  commands::add_open_options(c, o->open);
  c.example("attn-probe map t5-small/ --stack cross -o heads.svg < pairs",
            "attention of the decoder to the source, of the first line");
  c.option("--text", "TEXT", o->text, "the text [a line of standard input]");
  c.option("--line", "N", o->line, cli::AllowedRange{0, 1e15}, "number of the line, from 0");
  c.option("--layer", "L", o->layer, cli::AllowedRange{0, 1e9}, "only this layer, from 0");
  c.option("--head", "H", o->head, cli::AllowedRange{0, 1e9}, "only this head, from 0");
  c.choice("--what", o->what,
           {{"attentions", What::kAttentions}, {"hidden_states", What::kHiddenStates}},
           "for .npy and .safetensors: attention weights, or hidden states (state 0: embeddings)");
  c.option("-o,--output", "FILE", o->output,
           "a .svg, .png, .html, .npy or .safetensors file [the terminal]");
  commands::add_stack(c, o->stack);
  commands::add_sequences(c, o->sequences);
  add_color(c, o->open.common);
  c.writes({"output"});
  c.action([o, &c](cli::Session& session) { return run(*o, c, session); });
}

}  // namespace masque::attn_probe
