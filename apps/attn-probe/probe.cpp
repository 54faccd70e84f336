// attn-probe probe: what ridge regression predicts from the states of each layer.
#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "commands.hpp"
#include "commands/result_format.hpp"
#include "commands/sequences.hpp"
#include "commands/stack_option.hpp"
#include "evaluate/states/state_probe.hpp"
#include "evaluate/states/zero_scheme.hpp"

namespace masque::attn_probe {

namespace {

struct Options {
  commands::OpenModelOptions open;
  commands::SequenceOptions sequences;
  commands::StackOption stack;
  evaluate::ProbeRequest request;
  std::optional<double> rate;
  std::optional<std::uint64_t> seed;
  std::int64_t token = 0;
  std::optional<std::int64_t> length;
  evaluate::ZeroSchemeRequest scheme;
};

cli::ExitCode run_states(const Options& o, const cli::Command& command, cli::Session& session) {
  session.configure(o.open.common);
  commands::check_sequences(o.sequences, command);
  if (o.request.target == evaluate::ProbeTarget::kLabel && !o.sequences.records)
    throw UsageError("text has no labels: use --records");
  if ((o.rate || o.seed) && !o.request.at_mask)
    throw UsageError("--rate and --seed need --at mask");
  const commands::OpenedModel opened =
      commands::open_stack(o.open, o.stack, !o.sequences.records, session);
  session.note(fmt::format("{}: {}", opened.path, opened.description()));
  evaluate::ProbeRequest request = o.request;
  request.rate = o.rate.value_or(request.rate);
  request.mask = opened.options.mask_token_id;
  request.seed = o.seed.value_or(0);
  evaluate::StateProbe states(*opened.model, request);
  commands::SequenceWork work;
  work.use = [&](evaluate::Sequence&& sequence, std::string_view) { states.add(sequence); };
  work.enough = [&] { return states.full(); };
  const cli::ExitCode code = commands::each_sequence(o.sequences, opened, command, work, session);
  const auto format = commands::ResultFormat::of(opened.model->precision(), o.open.digits);
  cli::Table table(session, o.open.common,
                   {"hidden_states", "rows", "r_squared", "accuracy", "baseline"});
  for (const evaluate::ProbeRow& row : states.fit()) {
    table.row({row.layer, row.rows, format.cell(row.r_squared), format.cell(row.accuracy),
               format.cell(row.baseline)});
  }
  table.finish();
  return code;
}

void print_zero(const std::vector<evaluate::ZeroRow>& rows, const commands::ResultFormat& format,
                const Options& o, cli::Session& session) {
  cli::Table table(session, o.open.common, {"hidden_states", "spread", "scale"});
  for (const evaluate::ZeroRow& row : rows)
    table.row({row.layer, format.cell(row.spread), format.cell(row.scale)});
  table.finish();
}

cli::ExitCode run_scheme(const Options& o, cli::Session& session) {
  session.configure(o.open.common);
  evaluate::ZeroSchemeRequest request = o.scheme;
  request.seed = o.open.common.seed;
  print_zero(evaluate::zero_probe(request),
             commands::ResultFormat::of(kernel::Precision::kF64, o.open.digits), o, session);
  return cli::ExitCode::kDone;
}

cli::ExitCode run_zero(const Options& o, cli::Session& session) {
  session.configure(o.open.common);
  const commands::OpenedModel opened = commands::open_stack(o.open, o.stack, false, session);
  session.note(fmt::format("{}: {}", opened.path, opened.description()));
  constexpr Index kUsual = 64;
  const Index most = opened.model->design().max_position_embeddings;
  const Index length = o.length.value_or(most > 0 ? std::min(most, kUsual) : kUsual);
  const auto token = static_cast<TokenId>(o.token);
  std::optional<mask::Mask> mask;
  if (opened.mask_of)
    mask = opened.mask_of(std::vector<TokenId>(static_cast<std::size_t>(length), token));
  print_zero(evaluate::zero_probe(*opened.model, token, length, mask),
             commands::ResultFormat::of(opened.model->precision(), o.open.digits), o, session);
  return cli::ExitCode::kDone;
}

void declare_states(cli::Command& parent, const char* name, evaluate::ProbeTarget target,
                    const char* summary, const char* what) {
  auto o = std::make_shared<Options>();
  o->request.target = target;
  cli::Command& c = parent.subcommand(name, summary);
  if (target == evaluate::ProbeTarget::kLabel) {
    c.example(fmt::format("attn-probe probe {} electra-small-discriminator/ --records tagged.jsonl",
                          name),
              what);
  } else if (target == evaluate::ProbeTarget::kSegment) {
    c.example(
        "paste a.txt b.txt | tok encode bert-base-uncased/ --pair --special --jsonl --with seg | "
        "attn-probe probe segment bert-base-uncased/ --records -",
        what);
  } else {
    c.example(fmt::format("attn-probe probe {} bert-base-uncased/ < text", name), what);
  }
  commands::add_open_options(c, o->open);
  o->stack.stacks = commands::stack_names().first(2);
  commands::add_stack(c, o->stack);
  commands::add_sequences(c, o->sequences);
  c.choice("--at", o->request.at_mask, {{"all", false}, {"mask", true}},
           "probe the states of all tokens, or only of tokens replaced by the mask token");
  c.option(
      "--rate", "R", o->rate, cli::AllowedRange{1e-6, 1},
      fmt::format("with --at mask: share of each text's tokens to replace, at least one token [{}]",
                  o->request.rate));
  c.option("--rows", "N", o->request.rows, cli::AllowedRange{2, 1e9},
           "number of states to use per layer, taken from the first texts");
  if (target == evaluate::ProbeTarget::kToken) {
    c.option("--classes", "N", o->request.classes, cli::AllowedRange{2, 1e6},
             "distinguish the N most frequent tokens");
  }
  c.option("--folds", "N", o->request.folds, cli::AllowedRange{2, 1e6},
           "number of cross-validation folds over the texts");
  c.option("--ridge", "X", o->request.ridge, cli::AllowedRange{1e-12, 1e12},
           "ridge penalty, in units of the mean variance of a feature");
  commands::add_digits(c, o->open.digits);
  cli::add_seed(c, o->seed, "with --at mask: seed of the selection of tokens");
  cli::add_table(c, o->open.common);
  c.action([o, &c](cli::Session& session) { return run_states(*o, c, session); });
}

void declare_scheme(cli::Command& parent) {
  auto o = std::make_shared<Options>();
  cli::Command& c = parent.subcommand(
      "scheme", "runs the zero probe on a position scheme and a normalizer, with random weights");
  c.example("attn-probe probe scheme --position rope",
            "spread 0: positions cannot be distinguished");
  c.example("attn-probe probe scheme --position rope --normalizer l2",
            "spread above 0: positions can be distinguished");
  c.option("--position", "SCHEME", o->scheme.position,
           "position scheme, as listed by attn-probe variants");
  c.option("--normalizer", "NAME", o->scheme.normalizer,
           "normalizer, as listed by attn-probe variants");
  c.flag("--ends", o->scheme.ends, "use different first and last tokens, like [CLS] and [SEP]");
  c.option("--length", "N", o->scheme.length, cli::AllowedRange{2, 4096}, "number of tokens");
  c.option("--layers", "N", o->scheme.layers, cli::AllowedRange{1, 1000},
           "number of attention layers");
  c.option("--hidden-size", "N", o->scheme.hidden_size, cli::AllowedRange{1, 4096}, "hidden size");
  c.option("--heads", "N", o->scheme.heads, cli::AllowedRange{1, 4096},
           "number of heads; must divide the hidden size");
  commands::add_digits(c, o->open.digits);
  cli::add_seed(c, o->open.common);
  cli::add_table(c, o->open.common);
  c.action([o](cli::Session& session) { return run_scheme(*o, session); });
}

}  // namespace

void declare_probe(cli::Command& tool) {
  cli::Command& parent = tool.subcommand(
      "probe",
      "measures what ridge regression predicts from the states of each layer, on held-out texts");
  declare_states(parent, "position", evaluate::ProbeTarget::kPosition,
                 "predicts the position of a token",
                 "R², and the share of predictions that round to the right position");
  declare_states(parent, "token", evaluate::ProbeTarget::kToken, "predicts the token itself",
                 "among the 50 most frequent");
  declare_states(parent, "segment", evaluate::ProbeTarget::kSegment,
                 "predicts the segment of a token", "pairs of texts, read as records with seg");
  declare_states(
      parent, "label", evaluate::ProbeTarget::kLabel, "predicts the label of a token",
      "parts of speech, named entities …: records with a label for each token, -100 for none");
  auto o = std::make_shared<Options>();
  cli::Command& c = parent.subcommand(
      "zero", "tests whether states differ by position when all tokens are the same");
  c.example("attn-probe probe zero roformer/ --precision f64",
            "spread 0 if positions only change the scores");
  commands::add_open_options(c, o->open);
  // A decoder also reads a source, and there is none here.
  o->stack.stacks = commands::stack_names().first(1);
  commands::add_stack(c, o->stack);
  c.option("--token", "ID", o->token, cli::AllowedRange{0, 2147483647}, "id of the token");
  c.option("--length", "N", o->length, cli::AllowedRange{2, 1e6},
           "number of positions [64, or the model's maximum if that is less]");
  commands::add_digits(c, o->open.digits);
  cli::add_table(c, o->open.common);
  c.action([o](cli::Session& session) { return run_zero(*o, session); });
  declare_scheme(parent);
}

}  // namespace masque::attn_probe
