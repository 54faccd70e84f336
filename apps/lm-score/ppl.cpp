// lm-score ppl: perplexity of a corpus.
#include <memory>
#include <optional>

#include "aggregates.hpp"
#include "base/error.hpp"
#include "commands.hpp"
#include "commands/open_model.hpp"
#include "commands/result_format.hpp"
#include "commands/scoring.hpp"
#include "commands/text_stream.hpp"

namespace masque::lm_score {

namespace {

struct Options {
  commands::OpenModelOptions open;
  commands::ScoringOptions scoring;
  commands::StreamOptions stream;
};

cli::ExitCode run(Options& o, const cli::Command& command, cli::Session& session) {
  cli::CommonOptions& common = o.open.common;
  session.configure(common);
  commands::print_part_as_json(common, o.stream.shard);
  cli::need_stream(command);
  const commands::OpenedModel opened = commands::open_model(o.open, o.open.model, true, session);
  commands::Scoring scoring = commands::make_scoring(o.scoring, o.open, opened, session);
  const std::vector<commands::Given> input = commands::given_input(o.stream.input);
  scoring.given.insert(scoring.given.end(), input.begin(), input.end());
  if (scoring.options.kind == evaluate::ScoreKind::kElectric)
    throw InputError(opened.path,
                     "the model gives energies, which are not normalised, expected a model that "
                     "predicts tokens");
  if (scoring.options.kind == evaluate::ScoreKind::kMaskless)
    throw InputError(opened.path,
                     "the model gives one number per text, which is not a probability, expected a "
                     "model that predicts tokens");
  evaluate::Perplexity sum;
  evaluate::TextScorer scorer(*opened.model, scoring.options,
                              [&](evaluate::ScoredSentence&& s) { sum.add(s); });
  commands::LineWork work;
  work.use = [&](std::uint64_t id, std::string_view line) -> std::optional<std::string> {
    evaluate::Sentence sentence = encode_sentence(*opened.tokenizer, line, scoring.sentence);
    if (auto problem = scorer.length_problem(sentence)) return problem;
    scorer.add(id, std::move(sentence));
    return std::nullopt;
  };
  work.flush = [&] { scorer.flush(); };
  commands::InputPart part;
  work.part = &part;
  const cli::ExitCode code =
      commands::run_lines(commands::scored_stream(o.stream, scoring), command, work, session);
  commands::note_shortened(scorer.shortened(), session);
  commands::refuse_empty(
      sum.tokens.n > 0, code, o.stream, std::nullopt,
      sum.lines == 0 ? "no lines, expected a text" : "no tokens to score, expected a text");
  print_ppl(sum,
            with_shard(commands::provenance_json(scoring, opened), o.stream.shard, opened, part),
            commands::ResultFormat::of(opened.model->precision(), o.open.digits), common, session);
  return code;
}

}  // namespace

void declare_ppl(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("ppl", "perplexity of the text on standard input");
  c.example("lm-score ppl gpt2/ --policy slide:512 < text",
            "perplexity per token, and bits per byte");
  c.example("lm-score ppl bert-base-uncased/ < text", "the pseudo-perplexity of a masked model");
  c.example("lm-score ppl mdlm/ --kind mdlm < text",
            "masked diffusion: an upper bound on the perplexity, and its standard error");
  commands::add_open_options(c, o->open);
  commands::add_batch_tokens(c, o->open);
  commands::add_scoring(c, o->scoring);
  commands::add_digits(c, o->open.digits);
  commands::add_stream(c, o->stream, {.policy = false});
  c.flag("--json", o->open.common.json,
         "one JSON object, which merge can read; --shard implies it");
  cli::add_csv(c, o->open.common);
  c.action([o, &c](cli::Session& session) { return run(*o, c, session); });
}

}  // namespace masque::lm_score
