// lm-write generate: lines that a model goes on with.
#include "probe/write/generate.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json.hpp"
#include "base/json_writer.hpp"
#include "base/line_shard.hpp"
#include "base/parallel.hpp"
#include "commands.hpp"
#include "commands/open_model.hpp"
#include "commands/result_format.hpp"
#include "commands/text_stream.hpp"
#include "model/masks.hpp"
#include "probe/score/sentence.hpp"
#include "text/template_tokens.hpp"

namespace masque::lm_write {

namespace {

struct Options {
  commands::OpenModelOptions open;
  commands::StreamOptions stream;
  bool to_target = false;
  bool bos = false;
  probe::GenerateOptions generate;
  std::int64_t max_new_tokens = 20;
  std::int64_t num_return_sequences = 1;
  std::optional<double> temperature;
  std::optional<std::int64_t> top_k;
  std::optional<double> top_p;
  std::optional<std::uint64_t> seed;
};

probe::GenerateOptions generate_options(const Options& o, const commands::OpenedModel& opened) {
  probe::GenerateOptions options = o.generate;
  options.max_new_tokens = o.max_new_tokens;
  options.num_return_sequences = o.num_return_sequences;
  options.to_target = o.to_target;
  probe::SamplingOptions& sampling = options.sampling;
  const bool choice = o.temperature || o.top_k || o.top_p || o.seed || o.num_return_sequences > 1;
  if (choice && !sampling.do_sample) {
    throw UsageError(
        "--temperature, --top-k, --top-p, --seed and --num-return-sequences: expected with "
        "--do-sample");
  }
  sampling.temperature = o.temperature.value_or(1);
  sampling.top_k = o.top_k.value_or(0);
  sampling.top_p = o.top_p.value_or(1);
  options.seed = o.seed.value_or(0);
  const text::Roles& roles = opened.tokenizer->roles();
  for (const std::optional<TokenId>& end : {roles.eos, roles.sep}) {
    if (end) options.ends.push_back(*end);
  }
  return options;
}

/// What decided the texts, as far as it was in force: members of a JSON object.
std::string generate_provenance(const Options& o, const probe::GenerateOptions& options,
                                const commands::OpenedModel& opened) {
  std::string out;
  JsonWriter json(out);
  json.member("model", opened.path).member("kind", options.to_target ? "unilm" : "causal");
  json.member("precision", kernel::precision_name(opened.model->precision()));
  commands::add_given(json, opened.given);
  const probe::SamplingOptions& sampling = options.sampling;
  json.member("max_new_tokens", options.max_new_tokens).member("do_sample", sampling.do_sample);
  if (sampling.do_sample) {
    json.member("temperature", sampling.temperature).member("top_k", sampling.top_k);
    json.member("top_p", sampling.top_p).member("seed", options.seed);
  }
  if (!options.to_target) json.member("bos", o.bos);
  return out;
}

/// Lines to prompts: the template's tokens up to where the model goes on.
class Prompts {
 public:
  Prompts(const Options& options, const commands::OpenedModel& opened)
      : tokenizer_(*opened.tokenizer),
        encoder_(tokenizer_.id_encoder({})),
        around_(options.to_target ? text::pair_tokens(tokenizer_)
                                  : text::template_tokens(tokenizer_, 1)) {
    if (around_.before.empty()) begin_ = probe::begin_token(tokenizer_);
    if (options.bos && !options.to_target && begin_) around_.before.push_back(*begin_);
  }

  std::vector<TokenId> encode(std::string_view line) {
    std::vector<TokenId> ids = around_.before;
    encoder_.encode(line, ids);
    if (ids.empty() && begin_) ids.push_back(*begin_);
    ids.insert(ids.end(), around_.between.begin(), around_.between.end());
    return ids;
  }

 private:
  const text::Tokenizer& tokenizer_;
  text::IdEncoder encoder_;
  text::TemplateTokens around_;
  std::optional<TokenId> begin_;
};

/// Prints texts as they are finished.
class GeneratedPrinter {
 public:
  GeneratedPrinter(const Options& options, const probe::GenerateOptions& generate,
                   const commands::OpenedModel& opened, cli::Session& session)
      : options_(options),
        tokenizer_(*opened.tokenizer),
        number_(commands::ResultFormat::of(opened.model->precision(), options.open.digits)),
        provenance_(generate_provenance(options, generate, opened)),
        session_(session) {}

  void header() {
    const cli::CommonOptions& common = options_.open.common;
    const bool first = !options_.stream.shard || parse_shard(*options_.stream.shard).index == 1;
    if (common.json || common.no_header || !first) return;
    session_.print("id\tsample\tscore\ttokens\ttext\n");
  }

  void print(const probe::Generated& g) {
    const std::string text = tokenizer_.decode(g.ids, true);
    if (options_.open.common.json) {
      std::string out;
      JsonWriter json(out);
      json.begin_object().member("id", g.id).member("sample", g.sample);
      json.raw_member("score", number_.json(g.log_probability)).member("tokens", g.ids.size());
      json.member("ended", g.ended).key("ids").array(g.ids).member("text", text);
      json.raw(provenance_).end_object();
      session_.print(out + "\n");
    } else {
      session_.print(fmt::format("{}\t{}\t{}\t{}\t{}\n", g.id, g.sample,
                                 number_.text(g.log_probability), g.ids.size(), escape(text)));
    }
    if (session_.stdout_is_terminal()) session_.flush();
  }

 private:
  const Options& options_;
  const text::Tokenizer& tokenizer_;
  commands::ResultFormat number_;
  std::string provenance_;
  cli::Session& session_;
};

void check(const Options& o, const commands::OpenedModel& opened) {
  if (o.to_target && o.open.mask) {
    throw UsageError("--mask: --kind unilm has a mask of its own, expected none");
  }
  if (o.to_target && o.bos) {
    throw UsageError("--bos: --kind unilm begins as its template does, expected none");
  }
  if (!o.to_target && opened.mask_of) {
    const std::string problem = fmt::format(
        "{} '{}' goes by the words of a text, which a text in the making has not, expected "
        "another --mask",
        o.open.mask ? "--mask" : "the model's mask",
        model::open_mask(opened.model->design(), opened.options.masks)->text());
    if (o.open.mask) throw UsageError("generate: " + problem);
    throw InputError(opened.path, "generate: " + problem);
  }
  const auto problem =
      input_error_message([&] { probe::check_generation(opened.model->design(), o.to_target); });
  if (problem) throw InputError(opened.path, *problem);
}

cli::ExitCode run(const Options& o, const cli::Command& command, cli::Session& session) {
  session.configure(o.open.common);
  cli::need_stream(command);
  const commands::OpenedModel opened = commands::open_model(o.open, o.open.model, true, session);
  check(o, opened);
  const probe::GenerateOptions options = generate_options(o, opened);
  session.note(fmt::format("{}: {}; {}, at most {} tokens", opened.path, opened.description(),
                           options.sampling.do_sample ? "sampled" : "greedy",
                           options.max_new_tokens));
  const Index limit = opened.model->design().max_position_embeddings;
  Prompts prompts(o, opened);
  GeneratedPrinter printer(o, options, opened, session);
  printer.header();
  std::vector<probe::Prompt> waiting;
  Index cost = 0;
  commands::LineWork work;
  work.flush = [&] {
    if (waiting.empty()) return;
    for (const probe::Generated& g : generate(*opened.model, waiting, options)) printer.print(g);
    waiting.clear();
    cost = 0;
  };
  work.use = [&](std::uint64_t id, std::string_view line) {
    probe::Prompt prompt{id, prompts.encode(line)};
    const Index size = std::ssize(prompt.ids);
    if (size == 0) {
      commands::refuse_line(o.stream, id,
                            "no token, and the tokenizer has none that begins a text");
    }
    if (limit > 0 && size > limit) {
      commands::refuse_line(o.stream, id,
                            fmt::format("{} tokens, expected at most {}", size, limit));
    }
    const Index longest = size + options.max_new_tokens;
    const Index own =
        (limit > 0 ? std::min(longest, limit) : longest) * options.num_return_sequences;
    if (cost + own > o.open.batch_tokens) work.flush();
    cost += own;
    waiting.push_back(std::move(prompt));
  };
  return commands::run_lines(o.stream, command, work, session);
}

}  // namespace

void declare_generate(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("generate", "goes on with the lines of standard input");
  c.example("lm-write generate gpt2/ --max-new-tokens 40 < prompts",
            "the likeliest token, again and again");
  c.example("lm-write generate gpt2/ --do-sample --top-p 0.9 --num-return-sequences 5 < prompts",
            "five samples of each, from the likeliest tokens that have 90 % of the probability");
  c.example("lm-write generate model/ --kind unilm < sources",
            "targets, of a model that lm-train --objective unilm --format pairs made");
  commands::add_open_options(c, o->open);
  commands::add_batch_tokens(c, o->open);
  c.choice("--kind", o->to_target, {{"causal", false}, {"unilm", true}},
           "the lines are beginnings, or sources whose target is wanted");
  c.option("--max-new-tokens", "N", o->max_new_tokens, cli::AllowedRange{1, 1e9},
           "most tokens of a text; eos or sep ends it before, and so does the model's last "
           "position");
  c.flag("--do-sample", o->generate.sampling.do_sample,
         "draws tokens from the softmax instead of taking the likeliest");
  c.option("--temperature", "X", o->temperature, cli::AllowedRange{1e-6, 1e6},
           "divides the logits [1]");
  c.option("--top-k", "K", o->top_k, cli::AllowedRange{0, 1e9},
           "draws from the K likeliest tokens [0: from all]");
  c.option("--top-p", "P", o->top_p, cli::AllowedRange{1e-9, 1},
           "draws from the likeliest tokens that have this probability [1]");
  c.option("--num-return-sequences", "N", o->num_return_sequences, cli::AllowedRange{1, 1e9},
           "samples of each line");
  cli::add_seed(c, o->seed, "seed of the draws");
  c.flag("--bos", o->bos,
         "puts the bos (or eos) token in front where the template has nothing there, as lm-train "
         "does; empty lines have it anyway");
  commands::add_digits(c, o->open.digits);
  commands::add_stream(c, o->stream);
  c.flag("--json", o->open.common.json, "one JSON object a text, with its ids, instead of TSV");
  cli::add_no_header(c, o->open.common);
  c.action([o, &c](cli::Session& session) { return run(*o, c, session); });
}

}  // namespace masque::lm_write
