// attn-probe stats: every head over a corpus.
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json.hpp"
#include "commands.hpp"
#include "engine/engine.hpp"
#include "engine/files.hpp"
#include "engine/text_stream.hpp"
#include "probe/attention_stats.hpp"
#include "probe/record_items.hpp"
#include "probe/token_marks.hpp"
#include "stats_output.hpp"
#include "stats_parts.hpp"

namespace masque::attn_probe {

namespace {

struct Options {
  engine::EngineOptions engine;
  engine::StreamOptions stream;
  OutputOptions output;
  std::optional<std::string> records;
  bool no_special = false;
  double sink_threshold = 0.3;
  std::int64_t rank = 0;
};

/// Refuses options that are about text.
void check_records(const Options& o) {
  if (o.no_special || o.stream.input.crlf || o.stream.input.invalid != cli::Invalid::kReplace) {
    throw UsageError(
        "--no-special, --invalid and --crlf are about text, expected none of them with --records");
  }
}

/// Refuses options that are about what a whole corpus prints.
void check_shard(const Options& o) {
  if (!o.stream.shard) return;
  if (o.output.picture || o.output.pairs || o.output.fields != "all" || o.output.digits) {
    throw UsageError(
        "--shard prints sums for merge, expected --fields, --pairs, -o and --digits there");
  }
}

void use_records(const Options& o, const model::Design& design, probe::AttentionStats& stats) {
  probe::each_record_item({.path = *o.records,
                           .name = engine::name_of(*o.records),
                           .shard = o.stream.shard,
                           .first_record = o.stream.first_record,
                           .max_line = o.stream.input.max_line},
                          design, [&](probe::DumpItem&& item) {
                            stats.add({std::move(item), {}, {}});
                          });
  stats.flush();
}

cli::ExitCode use_text(const Options& o, const engine::Engine& engine, const cli::Command& command,
                       probe::AttentionStats& stats, cli::Session& session) {
  const Index longest = engine.model->design().max_position_embeddings;
  engine::LineWork work;
  work.use = [&](std::uint64_t id, std::string_view line) {
    probe::Sentence sentence =
        probe::encode_sentence(*engine.tokenizer, line, {.special = !o.no_special});
    if (sentence.tokens() == 0) return;
    if (longest != 0 && sentence.size() > longest) {
      engine::refuse_line(o.stream, id,
                          fmt::format("{} tokens, expected at most {}", sentence.size(), longest));
    }
    probe::TokenMarks marks = probe::mark_tokens(sentence, line, *engine.tokenizer);
    stats.add({{.number = id,
                .ids = std::move(sentence.ids),
                .segments = std::move(sentence.segments),
                .positions = {},
                .mask = {}},
               std::move(marks.special),
               std::move(marks.punctuation)});
  };
  work.flush = [&] { stats.flush(); };
  return engine::run_lines(o.stream, command, work, session);
}

Provenance provenance_of(const Options& o, const engine::Engine& engine) {
  return fmt::format(R"("model":{},"precision":"{}","sink":{}{}{})", quote_json(engine.path),
                     kernel::precision_name(engine.model->precision()), o.sink_threshold,
                     engine::given_json(engine.given), o.no_special ? R"(,"no_special":true)" : "");
}

cli::ExitCode run(Options& o, const cli::Command& command, cli::Session& session) {
  session.configure(o.engine.common);
  check_output(o.output);
  check_shard(o);
  if (o.records) {
    check_records(o);
  } else {
    cli::need_stream(command);
  }
  const engine::Engine engine = engine::open_engine(o.engine, o.engine.model, !o.records, session);
  session.note(fmt::format("{}: {}", engine.path, engine.description()));
  probe::AttentionStats stats(*engine.model,
                              {.batch_tokens = o.engine.batch_tokens,
                               .sink_threshold = o.sink_threshold,
                               .rank_sentences = static_cast<std::uint64_t>(o.rank)});
  cli::ExitCode code = cli::ExitCode::kDone;
  if (o.records) {
    use_records(o, engine.model->design(), stats);
  } else {
    code = use_text(o, engine, command, stats, session);
  }
  const Provenance provenance = provenance_of(o, engine);
  if (o.stream.shard) {
    session.print(part_json(stats.totals(), provenance));
  } else {
    print_stats(stats.totals(), provenance, o.output,
                engine::NumberFormat::of(engine.model->precision(), o.output.digits),
                o.engine.common, session);
  }
  return code;
}

}  // namespace

void declare_stats(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c =
      tool.subcommand("stats", "entropy, distance, masses and more of every head over a corpus");
  c.example("attn-probe stats bert-base-uncased/ --fields entropy,previous,special < text",
            "three fields of each head, with standard errors and counts");
  c.example("attn-probe stats bert-base-uncased/ --draw js -o heads.svg < text > heads.tsv",
            "the whole table, and a picture of one field");
  engine::add_engine(c, o->engine);
  c.option("--records", "FILE", o->records,
           "JSON lines with ids, and seg, pos and mask if they have them, instead of text; - is "
           "standard input");
  c.flag("--no-special", o->no_special, "text without the tokens of the tokenizer's template");
  c.option("--sink", "EPSILON", o->sink_threshold, cli::Range{0, 1},
           "mass that a row gives to a sink");
  c.option("--rank", "N", o->rank, cli::Range{0, 1e9},
           "ranks of logits and maps of the first N sentences");
  add_output(c, o->output);
  engine::add_stream(c, o->stream);
  c.flag("--json", o->engine.common.json, "one JSON object a line; --shard prints its own");
  c.flag("--no-header", o->engine.common.no_header, "a table without its first line");
  c.action([o, &c](cli::Session& session) { return run(*o, c, session); });
}

}  // namespace masque::attn_probe
