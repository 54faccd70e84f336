// mask-viz flow: which tokens reach which outputs through a stack of masked layers.
#include "mask/flow.hpp"

#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "base/json/json_writer.hpp"
#include "base/string/split.hpp"
#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "commands/flow_options.hpp"
#include "exchange/read_masks.hpp"
#include "output.hpp"
#include "positions.hpp"

namespace masque::mask_viz {

namespace {

struct Options {
  std::string mask;
  std::optional<std::string> content;
  PositionOptions positions;
  std::optional<Index> layers;
  mask::KeySource keys = mask::KeySource::kLayer;
  mask::QueryStart query = mask::QueryStart::kToken;
  mask::Residual residual = mask::Residual::kOn;
  bool two_streams = false;
  mask::Prediction prediction = mask::Prediction::kNone;
  std::vector<std::string> targets;
  std::vector<std::string> forbidden;
  std::optional<std::string> output;
  bool force = false;
  cli::CommonOptions common;
};

/// "3" or "3-7", both ends in; part of `whole`, which `option` takes in the form `expected`.
mask::Range parse_range(std::string_view text, std::string_view whole, std::string_view option,
                        std::string_view expected, Index n) {
  const auto [begin, end] = split_at_first(text, '-');
  const auto first = parse_unsigned(begin);
  const auto last = end ? parse_unsigned(*end) : first;
  if (!first || !last || *last < *first) {
    throw UsageError(fmt::format("{}: found '{}', expected {}", option, escape(whole), expected));
  }
  if (*last >= static_cast<std::uint64_t>(n)) {
    throw UsageError(
        fmt::format("{}: position {} in '{}', expected below {}", option, *last, escape(whole), n));
  }
  return {static_cast<Index>(*first), static_cast<Index>(*last) + 1};
}

mask::Forbidden parse_forbidden(const std::string& text, Index n) {
  const auto [source, target] = split_at_first(text, ':');
  constexpr std::string_view kForm = "SRC:DST as in 0-4:5";
  return {parse_range(source, text, "--forbid", kForm, n),
          parse_range(target.value_or(""), text, "--forbid", kForm, n)};
}

/// The positions of --targets, or of a record, each once.
std::vector<Index> predicting_positions(const std::vector<std::string>& ranges, Index n) {
  std::vector<bool> predicts(static_cast<std::size_t>(n), false);
  for (const std::string& text : ranges) {
    const mask::Range range = parse_range(text, text, "--targets", "a position or FIRST-LAST", n);
    for (Index i = range.begin; i < range.end; ++i) predicts[static_cast<std::size_t>(i)] = true;
  }
  std::vector<Index> positions;
  for (Index i = 0; i < n; ++i) {
    if (predicts[static_cast<std::size_t>(i)]) positions.push_back(i);
  }
  return positions;
}

/// Only these positions predict.
void forbid_predicted(const std::vector<Index>& positions, Index length,
                      mask::FlowRequest& request) {
  const Index shift = mask::prediction_offset(request.prediction, length);
  request.prediction = mask::Prediction::kNone;
  for (const Index i : positions) {
    if (i + shift < length) request.forbidden.push_back({{i + shift, i + shift + 1}, {i, i + 1}});
  }
}

/// One mask for every layer; a list of one stands for all of them.
std::vector<mask::Mask> bind_layers(const std::vector<mask::MaskLayer>& list,
                                    std::optional<Index> layers, mask::Lengths lengths) {
  Index total = 0;
  for (const mask::MaskLayer& layer : list) total += layer.count;
  const bool repeat = list.size() == 1 && total == 1;
  if (layers && !repeat && *layers != total) {
    throw UsageError(
        fmt::format("-L {}: '{}' has {} layers", *layers, mask::shown_layers(list), total));
  }
  if (total > 100000) throw UsageError("more than 100000 layers, expected at most 100000");
  std::vector<mask::Mask> masks;
  for (const mask::MaskLayer& layer : list) {
    const mask::Mask mask = layer.mask.any_head().bind(lengths);
    masks.insert(masks.end(), static_cast<std::size_t>(repeat ? layers.value_or(1) : layer.count),
                 mask);
  }
  return masks;
}

cli::Cell field_cell(const mask::ReceptiveField& field) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("min", field.minimum);
  json.raw_member("mean", fmt::format("{:.17g}", field.mean));
  json.member("max", field.maximum).member("farthest", field.farthest).end_object();
  return cli::Cell::raw(fmt::format("min={} mean={:.6g} max={} farthest={}", field.minimum,
                                    field.mean, field.maximum, field.farthest),
                        text);
}

void print_result(const Options& o, const mask::FlowRequest& request,
                  const mask::FlowResult& result, cli::Session& session) {
  const bool checked = request.prediction != mask::Prediction::kNone || !request.forbidden.empty();
  cli::Report report;
  report.add("verdict", result.leak ? "leak" : checked ? "clean" : "not checked");
  report.add("layers", static_cast<std::int64_t>(request.layers.size()));
  if (result.leak) {
    report.add("first_layer", result.leak->layer);
    report.add("witness", mask::path_text(result.leak->path, o.two_streams));
    report.add("leaking_pairs", result.leak->pairs);
  }
  for (const mask::ReceptiveField& field : result.fields) {
    report.add(fmt::format("reads_{}", field.layer), field_cell(field));
  }
  report.print(session, o.common);
}

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  if ((o.two_streams && !o.content && o.mask != "-") || (!o.two_streams && o.content)) {
    throw UsageError("--streams two and --content EXPR need each other");
  }
  if (o.prediction != mask::Prediction::kNone && !o.forbidden.empty()) {
    throw UsageError("--predict and --forbid cannot be combined");
  }
  if (!o.targets.empty() && o.prediction == mask::Prediction::kNone)
    throw UsageError("--targets needs --predict");
  const auto record = read_record_mask(o.mask, o.positions.tokenizer, session);
  if (record && !o.targets.empty())
    throw UsageError("--targets cannot be combined with a record, which says what is predicted");
  const std::vector<mask::MaskLayer> layers =
      record ? mask::parse_mask_layers(record->expression)
             : exchange::read_files(mask::parse_mask_layers(o.mask, mask::MaskFiles::kAllowed));
  std::vector<mask::MaskExpression> masks;
  masks.reserve(layers.size());
  for (const mask::MaskLayer& layer : layers) masks.push_back(layer.mask);
  const Positions positions = positions_of(o.positions, masks, session, record);
  mask::FlowRequest request{.layers = bind_layers(layers, o.layers, positions.lengths),
                            .content = {},
                            .keys = o.keys,
                            .query = o.query,
                            .residual = o.residual,
                            .prediction = o.prediction,
                            .forbidden = {},
                            .threads = o.common.threads};
  if (o.two_streams) {
    // The content stream of a record reads itself too, as in XLNet.
    const std::string content =
        o.content ? *o.content : fmt::format("({}) | diagonal", mask::layers_text(layers));
    const auto count = static_cast<Index>(request.layers.size());
    request.content = bind_layers(
        exchange::read_files(mask::parse_mask_layers(content, mask::MaskFiles::kAllowed)), count,
        positions.lengths);
  }
  if (record && o.prediction != mask::Prediction::kNone) {
    forbid_predicted(record->labelled, record->length, request);
    if (request.forbidden.empty())
      throw InputError(kStandardInput,
                       "the record predicts no token, expected labels of some for --predict");
  }
  if (!o.targets.empty()) {
    const Index n = positions.lengths.queries;
    forbid_predicted(predicting_positions(o.targets, n), n, request);
    if (request.forbidden.empty())
      throw UsageError("--targets: the positions predict no token: there is none after them");
  }
  for (const std::string& text : o.forbidden) {
    request.forbidden.push_back(parse_forbidden(text, positions.lengths.queries));
  }
  mask::FlowResult result = mask::follow_flow(request);
  if (o.output) {
    const draw::MaskFigureRequest picture{
        .title = fmt::format("Which tokens reach which outputs after {} layers of {}",
                             request.layers.size(), mask::shown_layers(layers)),
        .labels = positions.labels,
        .row_name = "output",
        .column_name = "token",
        .visible_name = "depends on the token",
        .blocked_name = "does not"};
    write_mask_or_picture(*o.output, mask::from_bits(std::move(result.reach)), picture, o.force);
  }
  print_result(o, request, result, session);
  return result.leak ? cli::ExitCode::kFound : cli::ExitCode::kDone;
}

}  // namespace

void declare_flow(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand(
      "flow",
      "shows which tokens reach which outputs through layers; exit 1 and a path if a token leaks");
  c.example("mask-viz flow causal -n 16 -L 12 --predict next",
            "prints 'clean': no position depends on the token that it predicts");
  c.example("mask-viz flow tta -n 8 -L 3 --kv input --query position --predict self",
            "T-TA: clean at every depth, because all layers read token embeddings");
  c.example(
      "mask-viz flow 'perm_query(seed=1)' --streams two --content 'perm_content(seed=1)' "
      "-n 8 -L 4 --query position --predict self",
      "XLNet: clean with two streams");
  c.example("mask-viz flow 'block_diffusion(4)' -n 32 -L 12 --predict clean",
            "block diffusion: no noised row reads the clean token that it predicts");
  c.example("mask-viz flow 'unilm(6,10)' -L 12 --predict next --targets 5-14",
            "UniLM: clean where the target is predicted, from the last position of the source on");
  c.example("mask-viz flow '3*window(128), full' -n 1024 --forbid 0-9:1000-1023",
            "tests whether the first 10 tokens reach the last 24 positions");
  c.argument("EXPR", o->mask,
             "one mask for all layers, or a list of layers: '3*window(128), full'; - reads a "
             "record from standard input");
  add_lengths(c, o->positions, true);
  c.option("-L,--layers", "LAYERS", o->layers, cli::AllowedRange{1, 100000},
           "number of layers, if EXPR is a single mask [1]");
  commands::add_flow(c, o->keys, o->query);
  c.choice("--streams", o->two_streams, {{"one", false}, {"two", true}},
           "two: add a content stream to the query stream, as in XLNet");
  c.option("--content", "EXPR", o->content,
           "masks of the content stream [for a record: its mask | diagonal]");
  c.choice("--residual", o->residual, {{"on", mask::Residual::kOn}, {"off", mask::Residual::kOff}},
           "off: no residual connection; a row that sees no key loses its content");
  c.choice(
      "--predict", o->prediction,
      {{"none", mask::Prediction::kNone},
       {"self", mask::Prediction::kSelf},
       {"next", mask::Prediction::kNext},
       {"clean", mask::Prediction::kClean}},
      "token that a position predicts and must not read: its own (self), the next (next), or for "
      "position i of the first half token i of the second half (clean, as in block diffusion)");
  c.option("--targets", "RANGE", o->targets,
           "with --predict: positions that predict, for example 4-15; may be repeated [all; for a "
           "record those with a label]");
  c.option("--forbid", "SRC:DST", o->forbidden,
           "tokens SRC must not reach positions DST, for example 0-4:5-9; may be repeated");
  add_labels(c, o->positions);
  add_record(c, o->positions);
  c.option("-o,--output", "FILE", o->output,
           "write which tokens reach which outputs: a picture (.svg .png) or data (.npy .npz "
           ".safetensors .pbm .tsv)");
  add_large_output(c, o->force);
  add_threads(c, o->common);
  add_report(c, o->common);
  c.writes({"output"});
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::mask_viz
