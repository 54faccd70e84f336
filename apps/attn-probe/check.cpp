// attn-probe check: tests a model as a black box.
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json_writer.hpp"
#include "base/string/comma_list.hpp"
#include "base/thread/parallel.hpp"
#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "commands/open_model.hpp"
#include "commands/sequences.hpp"
#include "commands/stack_option.hpp"
#include "evaluate/check/check_invariance.hpp"
#include "evaluate/check/check_leak.hpp"
#include "evaluate/check/check_sane.hpp"
#include "store/quantized/decoded_checkpoint.hpp"

namespace masque::attn_probe {

namespace {

// What the checks print: a table on stdout, a verdict on stderr.

using cli::Cell;

Cell none() { return Cell::none(); }

/// Six digits: differences are for looking at.
Cell short_cell(double value) {
  const std::string text = fmt::format("{:.6g}", value);
  return Cell::raw(text, value - value == 0 ? text : "null");
}

/// `state` as in transformers' hidden_states: 0 is the embeddings, N stands after N layers.
Cell state_cell(Index state, Index layers) { return state > layers ? Cell("output") : Cell(state); }

std::string state_place(Index state, Index layers) {
  return state > layers ? "the output"
         : state == 0   ? "the embeddings"
                        : "the states after " + counted(state, "layer");
}

/// Prints a row per layer and one for the output. Returns kFound if something leaks.
cli::ExitCode print_leaks(const evaluate::LeakReport& report, const evaluate::LeakRequest& request,
                          const commands::OpenModelOptions& options, cli::Session& session) {
  const Index layers = std::ssize(report.layers) - 1;
  cli::Table table(session, options.common,
                   {"hidden_states", "pairs", "leaking", "difference", "text", "token", "position",
                    "replacement"});
  for (std::size_t l = 0; l < report.layers.size(); ++l) {
    const evaluate::LayerLeaks& layer = report.layers[l];
    std::vector<Cell> cells = {state_cell(static_cast<Index>(l) + 1, layers), report.pairs,
                               layer.pairs, short_cell(layer.largest)};
    if (layer.first) {
      const evaluate::LeakPlace& at = *layer.first;
      cells.insert(cells.end(), {at.text, at.token, at.position, at.replacement});
    } else {
      cells.insert(cells.end(), 4, none());
    }
    table.row(cells, layer.first ? cli::Tone::kBad : cli::Tone::kPlain);
  }
  table.finish();
  const std::string how = fmt::format(
      "{} of {} tokens of {} texts, {} replacements each, tolerance {}, seed {}", report.tokens,
      report.all_tokens, report.texts, request.replacements, request.tolerance, request.seed);
  const auto first = report.first_layer();
  if (!first) {
    session.note(fmt::format("{}: clean; {}", options.model, how));
    return cli::ExitCode::kDone;
  }
  const evaluate::LeakPlace& at = *report.layers[static_cast<std::size_t>(*first) - 1].first;
  session.note(fmt::format("{}: leak in {}: text {}, position {} depends on token {}; {}",
                           options.model, state_place(*first, layers), at.text, at.position,
                           at.token, how));
  return cli::ExitCode::kFound;
}

/// Prints a row per way to run. Returns kFound if a row differs.
cli::ExitCode print_invariance(const evaluate::InvarianceReport& report,
                               const commands::OpenModelOptions& options, Index layers,
                               cli::Session& session) {
  cli::Table table(
      session, options.common,
      {"run", "texts", "rows", "differing", "difference", "text", "hidden_states", "position"});
  const evaluate::InvarianceRow* bad = nullptr;
  for (const evaluate::InvarianceRow& row : report.rows) {
    std::vector<Cell> cells = {row.name, row.texts, row.rows, row.differing,
                               short_cell(row.largest)};
    if (row.first) {
      cells.insert(cells.end(), {Cell(row.first->text), state_cell(row.first->layer, layers),
                                 Cell(row.first->position)});
      if (bad == nullptr) bad = &row;
    } else {
      cells.insert(cells.end(), 3, none());
    }
    table.row(cells, row.first ? cli::Tone::kBad : cli::Tone::kPlain);
  }
  table.finish();
  if (bad == nullptr) {
    session.note(fmt::format("{}: clean; tolerance {}", options.model, report.tolerance));
    return cli::ExitCode::kDone;
  }
  session.note(fmt::format("{}: '{}' differs first in {}: text {}, position {}; tolerance {}",
                           options.model, bad->name, state_place(bad->first->layer, layers),
                           bad->first->text, bad->first->position, report.tolerance));
  return cli::ExitCode::kFound;
}

/// Prints a row per check. Returns kFound if one found something; unused tensors do not count.
cli::ExitCode print_sane(const std::vector<evaluate::SaneRow>& rows, double tolerance,
                         const commands::OpenModelOptions& options, cli::Session& session) {
  cli::Table table(session, options.common, {"check", "checked", "found", "value", "places"});
  std::string found;
  for (const evaluate::SaneRow& row : rows) {
    std::string text;
    std::string json;
    JsonWriter(json).array(row.places);
    for (const std::string& place : row.places) text += (text.empty() ? "" : "; ") + place;
    const bool bad = row.found > 0 && row.check != "unused_tensor";
    if (bad) found += (found.empty() ? "" : ", ") + row.check;
    table.row({row.check, row.checked, row.found, short_cell(row.value),
               Cell::raw(text.empty() ? "-" : escape(text), json, text)},
              bad ? cli::Tone::kBad : cli::Tone::kPlain);
  }
  table.finish();
  session.note(fmt::format("{}: {}; tolerance {}", options.model,
                           found.empty() ? "sane" : "found " + found, tolerance));
  return found.empty() ? cli::ExitCode::kDone : cli::ExitCode::kFound;
}

// The command.

struct Options {
  commands::OpenModelOptions open;
  commands::SequenceOptions sequences;
  commands::StackOption stack;
  std::optional<mask::Prediction> prediction;
  std::int64_t tokens = 64;
  std::int64_t replacements = 3;
  std::int64_t count = 8;
  std::int64_t group = 8;
  std::optional<double> tolerance;
};

/// The texts as a check runs them. Two streams: the query stream reads what a record's mask says,
/// the content stream also itself.
evaluate::CheckInput input_of(const evaluate::Sequence& sequence, const model::Design& design) {
  evaluate::CheckInput input;
  input.ids = sequence.ids;
  input.positions = sequence.positions;
  input.segments = sequence.segments;
  input.mask = sequence.mask;
  input.source = sequence.source;
  if (sequence.mask && design.streams == model::Streams::kTwo) {
    input.query_mask = sequence.mask;
    input.mask = *sequence.mask | mask::parse_mask("diagonal").bind(sequence.mask->lengths());
  }
  return input;
}

commands::OpenedModel open(const Options& o, const cli::Command& command, cli::Session& session) {
  session.configure(o.open.common);
  commands::check_sequences(o.sequences, command);
  commands::OpenedModel opened =
      commands::open_stack(o.open, o.stack, !o.sequences.records, session);
  session.note(fmt::format("{}: {}", opened.path, opened.description()));
  return opened;
}

/// Calls use(texts) for groups of `group` texts in order of input; the last group may be smaller.
template <class Use>
cli::ExitCode each_group(const Options& o, const commands::OpenedModel& opened,
                         const cli::Command& command, std::size_t group, std::size_t fewest,
                         cli::Session& session, const Use& use) {
  std::vector<evaluate::NumberedInput> waiting;
  std::uint64_t texts = 0;
  commands::SequenceWork work;
  work.use = [&](evaluate::Sequence&& sequence, std::string_view) {
    ++texts;
    waiting.push_back({sequence.number, input_of(sequence, opened.model->design())});
    if (waiting.size() < group) return;
    use(std::span<evaluate::NumberedInput>(waiting));
    waiting.clear();
  };
  const cli::ExitCode code = commands::each_sequence(o.sequences, opened, command, work, session);
  // A test that compared nothing must not pass.
  if (texts < fewest) {
    throw InputError(
        fmt::format("nothing to compare: {} texts, expected at least {}", texts, fewest));
  }
  if (!waiting.empty()) use(std::span<evaluate::NumberedInput>(waiting));
  return code;
}

/// The exit code of a line that could not be read takes precedence over a finding.
cli::ExitCode worse(cli::ExitCode input, cli::ExitCode found) {
  return input == cli::ExitCode::kDone ? found : input;
}

cli::ExitCode run_leak(const Options& o, const cli::Command& command, cli::Session& session) {
  const commands::OpenedModel opened = open(o, command, session);
  const model::Design& design = opened.model->design();
  const bool causal = design.head.kind == model::HeadKind::kCausal;
  evaluate::LeakRequest request;
  if (design.head.shifted) {
    throw InputError(opened.path,
                     "check leak: the model predicts each token from the position before it, which "
                     "is not supported; expected a model that predicts it at its own");
  }
  request.second_copy = design.variants.latent.has_value();
  const model::ModelOptions& given = opened.options;
  if (request.second_copy && (!given.masks.empty() || given.keys || given.query)) {
    throw UsageError(
        "--mask, --kv and --query: not supported for a model with latent bottlenecks, which reads "
        "two copies under its own mask");
  }
  if (request.second_copy && o.prediction) {
    throw UsageError(
        "--predict: not supported for a model with latent bottlenecks, which predicts the next "
        "token of a second copy");
  }
  request.prediction = o.prediction.value_or(
      causal || request.second_copy ? mask::Prediction::kNext : mask::Prediction::kSelf);
  request.tokens = o.tokens;
  request.replacements = o.replacements;
  request.tolerance = o.tolerance.value_or(0);
  request.seed = o.open.common.seed;
  request.batch_tokens = o.open.batch_tokens;
  if (design.pad_token_id) request.never = static_cast<TokenId>(*design.pad_token_id);
  const bool self = request.prediction == mask::Prediction::kSelf;
  evaluate::LeakReport report;
  const auto check = [&](std::span<evaluate::NumberedInput> texts) {
    evaluate::CheckInput& input = texts.front().input;
    if (design.streams == model::Streams::kTwo && !input.query_mask) {
      if (!opened.options.masks.empty()) {
        throw UsageError(
            "--mask cannot be combined with a model of two streams, unless records have masks");
      }
      // The query stream predicts; the masks are those of its objective.
      const mask::Lengths lengths{input.size(), input.size()};
      input.query_mask = mask::parse_mask(self ? "tta" : "strict_causal").bind(lengths);
      input.mask = mask::parse_mask(self ? "full" : "causal").bind(lengths);
    }
    if (request.second_copy)
      input = evaluate::two_copies(input, design, request.seed, texts.front().text);
    evaluate::check_leak(*opened.model, texts.front().text, input, request, report);
  };
  const cli::ExitCode code = each_group(o, opened, command, 1, 1, session, check);
  if (report.pairs == 0) {
    throw InputError("nothing to compare: no text has an output that must not depend on a token");
  }
  const cli::ExitCode found = print_leaks(report, request, o.open, session);
  if (found == cli::ExitCode::kFound && self && !o.prediction && opened.options.masks.empty() &&
      design.head.kind == model::HeadKind::kMasked && design.streams == model::Streams::kOne) {
    session.note(fmt::format(
        "{}: as expected of a masked language model, which reads its input everywhere and predicts "
        "masked tokens; --predict next tests for later tokens",
        opened.path));
  }
  return worse(code, found);
}

TokenId padding_token(const commands::OpenedModel& opened) {
  if (const auto& pad = opened.model->design().pad_token_id) return static_cast<TokenId>(*pad);
  if (!opened.tokenizer) return 0;  // hidden as it is, any id will do
  const text::Roles roles = opened.tokenizer->roles();
  return roles.pad ? *roles.pad : 0;
}

enum class Invariance { kPadding, kBatch, kOrder };

cli::ExitCode run_invariance(Invariance kind, const Options& o, const cli::Command& command,
                             cli::Session& session) {
  const bool padding = kind == Invariance::kPadding;
  const commands::OpenedModel opened = open(o, command, session);
  const model::Model& model = *opened.model;
  evaluate::InvarianceReport report;
  report.tolerance =
      o.tolerance.value_or(padding ? evaluate::padding_tolerance(model.precision()) : 0);
  evaluate::PaddingRequest request;
  request.count = o.count;
  request.token = padding_token(opened);
  const auto check = [&](std::span<const evaluate::NumberedInput> texts) {
    switch (kind) {
      case Invariance::kPadding:
        evaluate::check_padding(model, opened.options, texts.front(), request, o.open.batch_tokens,
                                report);
        break;
      case Invariance::kBatch:
        evaluate::check_batch(model, texts, o.open.batch_tokens, report);
        break;
      case Invariance::kOrder:
        evaluate::check_order(model, texts, o.open.common.seed, report);
        break;
    }
  };
  if (padding && evaluate::reads_first_row(model.design())) {
    session.note(fmt::format("{}: padding before a text is not tested: {}", opened.path,
                             model.design().head.shifted
                                 ? "the first token is predicted from its own position"
                                 : "latent bottlenecks read the first token"));
  }
  const auto group = static_cast<std::size_t>(padding ? 1 : o.group);
  const cli::ExitCode code = each_group(o, opened, command, group, padding ? 1 : 2, session, check);
  return worse(code, print_invariance(report, o.open, model.design().num_hidden_layers, session));
}

std::vector<std::pair<std::string, TokenId>> special_tokens(const commands::OpenedModel& opened) {
  std::vector<std::pair<std::string, TokenId>> special;
  const auto& pad = opened.model->design().pad_token_id;
  const text::Roles roles = opened.tokenizer ? opened.tokenizer->roles() : text::Roles{};
  for (const auto& [name, role] : text::kRoleFields) {
    std::optional<TokenId> id = roles.*role;
    if (!id && name == "pad" && pad) id = static_cast<TokenId>(*pad);
    if (!id && name == "mask") id = opened.options.mask_token_id;
    if (id) special.emplace_back(name, *id);
  }
  return special;
}

cli::ExitCode run_sane(const Options& o, const cli::Command& command, cli::Session& session) {
  const double tolerance = o.tolerance.value_or(1e-3);
  session.configure(o.open.common);
  commands::check_sequences(o.sequences, command);
  const store::Checkpoint checkpoint = store::open_decoded(o.open.model);
  const evaluate::SaneRow finite = evaluate::check_finite(
      checkpoint, o.open.common.threads > 0 ? o.open.common.threads : default_threads());
  // No model is built from numbers that are not finite.
  if (finite.found > 0) return print_sane({finite}, tolerance, o.open, session);
  const commands::OpenedModel opened = open(o, command, session);
  const model::Model& model = *opened.model;
  evaluate::SaneHeads heads(model, tolerance, o.stack.of_source());
  const auto add = [&](std::span<const evaluate::NumberedInput> texts) {
    heads.add(texts.front().input);
  };
  const cli::ExitCode code = each_group(o, opened, command, 1, 1, session, add);
  std::vector<evaluate::SaneRow> rows = heads.rows();
  rows.push_back(finite);
  const model::LoadOptions load{.family = o.open.family};
  const model::LoadedModel<float> loaded =
      o.stack.pairs() ? std::move(model::load_pair<float>(o.open.model, load)->decoder)
                      : model::load_model<float>(o.open.model, load);
  const auto weights = evaluate::check_weights(loaded, special_tokens(opened), o.stack.of_source());
  rows.insert(rows.end(), weights.begin(), weights.end());
  evaluate::SaneRow unused;
  unused.check = "unused_tensor";
  unused.checked = checkpoint.tensors().size();
  unused.places = model.unused();
  unused.found = unused.places.size();
  unused.value = static_cast<double>(unused.found);
  rows.push_back(unused);
  return worse(code, print_sane(rows, tolerance, o.open, session));
}

/// `heads`: the check is one of heads, which the attention to a source has, too.
void add_common(cli::Command& command, Options& options, const std::string& tolerance,
                bool heads = false) {
  if (!heads) options.stack.stacks = commands::stack_names().first(2);
  commands::add_open_options(command, options.open);
  commands::add_stack(command, options.stack);
  commands::add_sequences(command, options.sequences);
  options.sequences.skip_empty = true;
  command.option("--tolerance", "X", options.tolerance, cli::AllowedRange{0, 1e9}, tolerance);
  cli::add_table(command, options.open.common);
}

constexpr const char* kDifference =
    "largest |a - b| of two rows, divided by the largest |b| if that exceeds 1, that counts as "
    "equal [0: bit for bit]";

void declare_leak(cli::Command& check) {
  auto o = std::make_shared<Options>();
  cli::Command& c =
      check.subcommand("leak", "tests whether an output depends on a token that it must not read");
  c.example("attn-probe check leak gpt2/ < text",
            "tests whether outputs of a causal model depend on later tokens");
  c.example("attn-probe check leak tta/ --predict self < text",
            "tests whether outputs of a T-TA depend on their own tokens; they do not");
  c.choice("--predict", o->prediction,
           {{"self", std::optional(mask::Prediction::kSelf)},
            {"next", std::optional(mask::Prediction::kNext)}},
           "self: output i must not depend on token i; next: output i must not depend on tokens "
           "after i [next for a causal head, else self]");
  c.option("--tokens", "N", o->tokens, cli::AllowedRange{0, 1e9},
           "number of tokens to replace in each text, evenly spread; 0: all");
  c.option("--replacements", "N", o->replacements, cli::AllowedRange{1, 1e6},
           "random replacements tried for each token");
  add_common(c, *o, kDifference);
  commands::add_batch_tokens(c, o->open);
  cli::add_seed(c, o->open.common);
  c.action([o, &c](cli::Session& session) { return run_leak(*o, c, session); });
}

void declare_invariance(cli::Command& check) {
  auto pad = std::make_shared<Options>();
  cli::Command& p =
      check.subcommand("pad", "tests whether padding changes the states of real tokens");
  p.example("attn-probe check pad bert-base-uncased/ < text",
            "8 padding tokens after each text, then before it");
  p.option("--count", "N", pad->count, cli::AllowedRange{1, 1e6}, "number of padding tokens");
  add_common(
      p, *pad,
      "largest difference that counts as equal, as in check leak [1e-5; f64: 1e-12; bf16: 0.05]");
  commands::add_batch_tokens(p, pad->open);
  p.action([pad, &p](cli::Session& session) {
    return run_invariance(Invariance::kPadding, *pad, p, session);
  });

  auto batch = std::make_shared<Options>();
  cli::Command& b =
      check.subcommand("batch", "tests whether results depend on the other texts in the batch");
  b.example("attn-probe check batch bert-base-uncased/ < text",
            "each text alone, then 8 texts in one batch");
  b.option("--group", "N", batch->group, cli::AllowedRange{2, 1e6}, "texts per batch");
  add_common(b, *batch, kDifference);
  commands::add_batch_tokens(b, batch->open);
  b.action([batch, &b](cli::Session& session) {
    return run_invariance(Invariance::kBatch, *batch, b, session);
  });

  auto order = std::make_shared<Options>();
  cli::Command& r =
      check.subcommand("order", "tests whether results depend on the texts run before");
  r.example("attn-probe check order bert-base-uncased/ < text",
            "each text alone, then 8 texts in another order, and the longest before and after the "
            "shortest");
  r.option("--group", "N", order->group, cli::AllowedRange{1, 1e6}, "texts per shuffled group");
  add_common(r, *order, kDifference);
  cli::add_seed(r, order->open.common);
  r.action([order, &r](cli::Session& session) {
    return run_invariance(Invariance::kOrder, *order, r, session);
  });
}

void declare_sane(cli::Command& check) {
  auto o = std::make_shared<Options>();
  cli::Command& c = check.subcommand(
      "sane",
      "looks for signs of a broken conversion: dead heads, NaN, zero norms, unset special tokens");
  c.example("attn-probe check sane bert-base-uncased/ < text", "exit 1 if a check finds something");
  add_common(c, *o,
             "heads are uniform if every n · weight is within X of 1, stuck if every row gives at "
             "least 1 - X to the same key [0.001]",
             true);
  c.action([o, &c](cli::Session& session) { return run_sane(*o, c, session); });
}

}  // namespace

void declare_check(cli::Command& tool) {
  cli::Command& check =
      tool.subcommand("check", "tests a model as a black box; exit 1 if a test finds something");
  declare_leak(check);
  declare_invariance(check);
  declare_sane(check);
}

}  // namespace masque::attn_probe
