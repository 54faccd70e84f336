// attn-probe stats: every head over a corpus.
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "commands.hpp"
#include "commands/open_model.hpp"
#include "commands/part_contents.hpp"
#include "commands/sequences.hpp"
#include "commands/stack_option.hpp"
#include "evaluate/attention/attention_stats.hpp"
#include "evaluate/attention/token_marks.hpp"
#include "stats_output.hpp"
#include "stats_parts.hpp"

namespace masque::attn_probe {

namespace {

struct Options {
  commands::OpenModelOptions open;
  commands::SequenceOptions input;
  commands::StackOption stack;
  OutputOptions output;
  evaluate::HeadThresholds thresholds;
  std::int64_t rank = 0;
};

/// Refuses options that only apply to the printed table of a whole corpus.
void check_shard(const Options& o) {
  if (!o.input.stream.shard) return;
  if (o.open.common.csv)
    throw UsageError(
        "--csv cannot be combined with --shard: merge reads JSON; give --csv to merge");
  if (o.output.picture || o.output.pairs || o.output.fields || o.output.digits) {
    throw UsageError(
        "--shard prints sums: give --fields, --pairs, -o and --digits to merge instead");
  }
}

Provenance provenance_of(const Options& o, const commands::OpenedModel& opened) {
  Provenance out;
  JsonWriter json(out);
  json.member("model", opened.path);
  json.member("precision", kernel::precision_name(opened.model->precision()));
  json.member("sink_epsilon", o.thresholds.sink).member("near_distance", o.thresholds.near);
  commands::add_given(json, opened.given);
  if (o.rank > 0) json.member("rank", o.rank);
  add_tokens(shown_tokens(o.output), json);
  commands::add_given(json, commands::given_sequences(o.input));
  return out;
}

std::vector<TokenId> ids_of(const std::vector<std::string>& tokens,
                            const commands::OpenedModel& opened) {
  std::vector<TokenId> ids;
  for (const std::string& token : tokens) {
    const std::optional<TokenId> id = opened.tokenizer->find(token);
    if (!id) {
      throw UsageError(
          fmt::format("{}{}: the tokenizer has no such token, expected one of its "
                      "vocabulary, spelled as there",
                      kTokenField, escape(token)));
    }
    ids.push_back(*id);
  }
  return ids;
}

/// What is known of the tokens that `sequence`, which comes from `text`, reads.
evaluate::TokenMarks marks_of(const evaluate::Sequence& sequence, std::string_view text,
                              const Options& o, const commands::OpenedModel& opened) {
  if (o.input.records) return {};
  if (!o.stack.pairs())
    return evaluate::mark_tokens(sequence.ids, sequence.spans, text, *opened.tokenizer);
  const auto [source, target] = commands::pair_columns(text);
  return o.stack.of_source()
             ? evaluate::mark_tokens(sequence.source, sequence.source_spans, source,
                                     *opened.tokenizer)
             : evaluate::mark_tokens(sequence.ids, sequence.spans, target, *opened.tokenizer);
}

cli::ExitCode run(Options& o, const cli::Command& command, cli::Session& session) {
  session.configure(o.open.common);
  o.input.skip_empty = true;
  for (const char* field : {"sink", "near"}) {
    if (command.is_requested(field)) o.output.besides += fmt::format(",{}", field);
  }
  o.output.of_source = o.stack.of_source();
  check_output(o.output, o.open.common.json);
  if (o.rank == 0 && needs_ranks(o.output))
    throw UsageError(
        "rank fields need --rank N: ranks are computed for the first N sentences only");
  check_shard(o);
  commands::check_sequences(o.input, command);
  const std::vector<std::string> tokens = shown_tokens(o.output);
  const commands::OpenedModel opened =
      commands::open_stack(o.open, o.stack, !o.input.records || !tokens.empty(), session);
  session.note(fmt::format("{}: {}", opened.path, opened.description()));
  evaluate::AttentionStats stats(
      *opened.model, {.batch_tokens = o.open.batch_tokens,
                      .thresholds = o.thresholds,
                      .rank_sentences = static_cast<std::uint64_t>(o.rank),
                      .tokens = ids_of(tokens, opened),
                      .compares_layers = o.input.stream.shard.has_value() || needs_layers(o.output),
                      .of_source = o.stack.of_source()});
  commands::InputPart part;
  commands::SequenceWork work;
  work.part = &part;
  work.flush = [&] { stats.flush(); };
  work.use = [&](evaluate::Sequence&& sequence, std::string_view text) {
    if (sequence.size() == sequence.prefix + sequence.suffix) return;
    evaluate::TokenMarks marks = marks_of(sequence, text, o, opened);
    stats.add({std::move(sequence), std::move(marks.special), std::move(marks.punctuation)});
  };
  const cli::ExitCode code = commands::each_sequence(o.input, opened, command, work, session);
  const Provenance provenance = provenance_of(o, opened);
  commands::refuse_empty(stats.totals().sentences > 0, code, o.input.stream, o.input.records);
  if (o.input.stream.shard) {
    session.print(part_json(stats.totals(),
                            commands::part_members(*o.input.stream.shard, opened, part), provenance,
                            tokens));
  } else {
    print_stats(stats.totals(), provenance, o.output,
                commands::ResultFormat::of(opened.model->precision(), o.output.digits),
                o.open.common, session);
  }
  return code;
}

}  // namespace

void declare_stats(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand(
      "stats", "measures every attention head over a corpus: entropy, distance, sinks and more");
  c.example("attn-probe stats bert-base-uncased/ --fields entropy,previous,special < text",
            "three fields of each head, with standard errors and counts");
  c.example("attn-probe stats bert-base-uncased/ --draw js -o heads.svg < text > heads.tsv",
            "the whole table, and a heat map of one field");
  c.example("attn-probe stats t5-small/ --stack cross < pairs",
            "attention of the decoder to the source; --stack encoder reads texts");
  commands::add_open_options(c, o->open);
  commands::add_batch_tokens(c, o->open);
  c.option("--sink", "EPSILON", o->thresholds.sink, cli::AllowedRange{0, 1},
           "a row counts towards a sink if it gives that key more than EPSILON");
  c.option("--near", "K", o->thresholds.near, cli::AllowedRange{0, 1e6},
           "largest distance that the field near counts");
  c.option("--rank", "N", o->rank, cli::AllowedRange{0, 1e9},
           "compute ranks of logits and maps for the first N sentences");
  c.option("--token", "TOKEN", o->output.tokens,
           "measure the attention to this token of the vocabulary: the field token:TOKEN; several "
           "times for several tokens");
  commands::add_stack(c, o->stack);
  add_output(c, o->output);
  commands::add_sequences(c, o->input);
  c.flag("--json", o->open.common.json,
         "one JSON object a line instead of TSV; --shard always prints JSON");
  cli::add_csv(c, o->open.common);
  c.action([o, &c](cli::Session& session) { return run(*o, c, session); });
}

}  // namespace masque::attn_probe
