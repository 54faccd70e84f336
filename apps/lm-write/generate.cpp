// lm-write generate: lines that a model continues.
#include "evaluate/write/generate.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json/json_writer.hpp"
#include "base/thread/parallel.hpp"
#include "commands.hpp"
#include "commands/result_format.hpp"
#include "evaluate/score/length_policy.hpp"
#include "generate_options.hpp"
#include "kernel/product/strip_weights.hpp"
#include "masked_model.hpp"
#include "model/masks.hpp"

namespace masque::lm_write {

namespace {

/// Prints texts as they are finished.
class GeneratedPrinter {
 public:
  GeneratedPrinter(const GenerateOptions& options, const commands::OpenedModel& opened,
                   cli::Session& session)
      : options_(options),
        tokenizer_(*opened.tokenizer),
        number_(commands::ResultFormat::of(opened.model->precision(), options.open.digits)),
        provenance_(generate_provenance(options, opened)),
        session_(session) {}

  void header() {
    if (!commands::has_header(options_.open.common, options_.stream)) return;
    session_.print(cli::header_line(session_, options_.open.common,
                                    {"id", "sample", "score", "tokens", "text"}));
  }

  void print(const evaluate::Generated& g) {
    const std::string text = tokenizer_.decode(g.ids, true);
    if (options_.open.common.json) {
      std::string out;
      JsonWriter json(out);
      json.begin_object().member("id", g.id).member("sample", g.sample);
      json.raw_member("score", number_.json(g.score));
      if (options_.beams()) json.raw_member("log_probability", number_.json(g.log_probability));
      json.member("tokens", g.ids.size());
      if (!options_.masked()) json.member("ended", g.ended);
      json.key("ids").array(g.ids).member("text", text);
      json.raw(provenance_).end_object();
      session_.print(out + "\n");
    } else {
      session_.print(cli::row_line(
          session_, options_.open.common,
          {g.id, g.sample, number_.cell(g.score), static_cast<std::uint64_t>(g.ids.size()), text}));
    }
    if (session_.stdout_is_terminal()) session_.flush();
  }

 private:
  const GenerateOptions& options_;
  const text::Tokenizer& tokenizer_;
  commands::ResultFormat number_;
  std::string provenance_;
  cli::Session& session_;
};

void check_model(const GenerateOptions& o, const commands::OpenedModel& opened) {
  if (o.masked()) {
    need_masked_head(opened);
    if (!opened.tokenizer->roles().mask)
      throw InputError(opened.path, "the tokenizer has no mask token, expected one");
    if (!o.unmasks()) return;
    evaluate::check_unmasking(opened.model->design(), unmask_options(masked_options(o, opened)));
    if (o.open.mask && model::causal_block_size(opened.model->design()))
      throw UsageError("--mask cannot be used: the model writes in blocks, with its own mask");
    return;
  }
  const bool to_target = o.kind == Continuation::kUnilm;
  if (!to_target && opened.mask_of) {
    const std::string problem = fmt::format(
        "{} '{}' depends on the words of a text, which are not known while it is written; use "
        "another --mask",
        o.open.mask ? "--mask" : "the model's mask",
        model::open_mask(opened.model->design(), opened.options.masks)->text());
    if (o.open.mask) throw UsageError("generate: " + problem);
    throw InputError(opened.path, "generate: " + problem);
  }
  const auto problem =
      input_error_message([&] { evaluate::check_generation(opened.model->design(), to_target); });
  if (problem) throw InputError(opened.path, *problem);
}

/// Lines that run together: what they become, and what they cost.
class LinesToWrite {
 public:
  LinesToWrite(const GenerateOptions& o, const commands::OpenedModel& opened, Prompts& prompts,
               GeneratedPrinter& printer)
      : o_(o), opened_(opened), prompts_(prompts), printer_(printer) {
    if (o.masked()) {
      masked_ = masked_options(o, opened);
    } else {
      generate_ = generate_options(o, opened);
      // As in transformers, 20 new tokens that nobody asked for end with the positions; a last
      // token that need not be read has one more.
      if (o.kind == Continuation::kCausal && !o.max_new_tokens && !o.max_length)
        generate_.longest = limit();
    }
  }

  /// Returns why the line cannot be continued, or nothing.
  std::optional<std::string> add(std::uint64_t id, std::string_view line) {
    if (o_.masked()) {
      evaluate::MaskedText text = prompts_.masked(id, line, o_.new_tokens());
      if (auto problem = size_problem(text.sentence.size())) return problem;
      make_room(text.sentence.size() * o_.texts());
      texts_.push_back(std::move(text));
      return std::nullopt;
    }
    evaluate::Prompt prompt = prompts_.prompt(id, line);
    const Index size = std::ssize(prompt.ids);
    if (size == 0) return "no token, and the tokenizer has no token that begins a text";
    const Index source = std::ssize(prompt.encoder_ids);
    if (const model::Model* encoder = opened_.model->encoder()) {
      const Index most = encoder->design().max_position_embeddings;
      if (source == 0) return "a source without tokens, expected at least one";
      if (most > 0 && source > most) return "source: " + evaluate::too_long(source, most);
    }
    if (auto problem = size_problem(size)) return problem;
    for (const Index most : {generate_.max_length, generate_.longest}) {
      if (most > 0 && size >= most) return evaluate::too_long(size, most - 1);
    }
    const Index longest = size + evaluate::most_new_tokens(generate_, size);
    make_room(source + (limit() > 0 ? std::min(longest, limit()) : longest) *
                           std::max(o_.texts(), generate_.beams.num_beams));
    waiting_.push_back(std::move(prompt));
    return std::nullopt;
  }

  void write() {
    const bool none = waiting_.empty() && texts_.empty();
    const std::vector<evaluate::Generated> written =
        none          ? std::vector<evaluate::Generated>{}
        : o_.masked() ? evaluate::generate_masked(*opened_.model, texts_, masked_)
                      : evaluate::generate(*opened_.model, waiting_, generate_);
    for (const evaluate::Generated& g : written) printer_.print(g);
    waiting_.clear();
    texts_.clear();
    cost_ = 0;
  }

 private:
  Index limit() const { return opened_.model->design().max_position_embeddings; }

  std::optional<std::string> size_problem(Index size) const {
    if (limit() <= 0 || size <= limit()) return std::nullopt;
    return evaluate::too_long(size, limit());
  }

  void make_room(Index own) {
    if (cost_ + own > o_.open.batch_tokens) write();
    cost_ += own;
  }

  const GenerateOptions& o_;
  const commands::OpenedModel& opened_;
  Prompts& prompts_;
  GeneratedPrinter& printer_;
  evaluate::GenerateOptions generate_;
  evaluate::MaskedGenerateOptions masked_;
  std::vector<evaluate::Prompt> waiting_;
  std::vector<evaluate::MaskedText> texts_;
  Index cost_ = 0;
};

cli::ExitCode run(const GenerateOptions& given, const cli::Command& command,
                  cli::Session& session) {
  session.configure(given.open.common);
  const GenerateOptions o = settled(given, session);
  check_generate_options(o);
  cli::need_stream(command);
  // A row a text and token: weights come from memory for each of them.
  if (!o.masked()) kernel::choose_product(kernel::ProductChoice::kFewRows);
  commands::OpenModelOptions open = o.open;
  open.decoder = o.kind == Continuation::kCausal;
  const commands::OpenedModel opened = commands::open_model(open, open.model, true, session);
  check_model(o, opened);
  check_generation_config(o, opened, session);
  std::optional<Sources> sources;
  if (o.source) sources.emplace(*o.source);
  Prompts prompts(opened, o.kind, sources ? &*sources : nullptr, begins_texts(o, opened),
                  target_begin(o, opened));
  GeneratedPrinter printer(o, opened, session);
  LinesToWrite lines(o, opened, prompts, printer);
  session.note(
      fmt::format("{}: {}; {}", opened.path, opened.description(), generate_description(o)));
  printer.header();
  std::uint64_t end = o.stream.first_record;
  commands::LineWork work;
  work.label = "generating";
  work.flush = [&] { lines.write(); };
  work.use = [&](std::uint64_t id, std::string_view line) {
    end = id + 1;
    return lines.add(id, line);
  };
  const cli::ExitCode code = commands::run_lines(o.stream, command, work, session);
  // A part of standard input has its part of the sources.
  const bool part = o.stream.shard || command.is_set("first-record");
  const bool whole = !part && o.stream.input.invalid != cli::Invalid::kSkip;
  if (sources && whole) sources->check_count(end);
  return code;
}

}  // namespace

void declare_generate(cli::Command& tool) {
  auto o = std::make_shared<GenerateOptions>();
  cli::Command& c = tool.subcommand("generate", "continues each line of standard input");
  c.example("lm-write generate gpt2/ --max-new-tokens 40 < prompts", "greedy decoding");
  c.example("lm-write generate gpt2/ --num-beams 4 --num-return-sequences 2 < prompts",
            "beam search: the two best texts");
  c.example("lm-write generate gpt2/ --do-sample --top-p 0.9 --num-return-sequences 5 < prompts",
            "five samples of each line, with nucleus sampling (90 % of the probability)");
  c.example("lm-write generate t5-small/ --num-beams 4 < sources",
            "an encoder–decoder writes the target of each line");
  c.example("lm-write generate model/ --kind unilm < sources",
            "writes targets, with a model of lm-train --objective unilm --format pairs");
  c.example("lm-write generate bert/ --kind masked --how mask-predict --length 12 < prompts",
            "fills twelve masks after each line in ten passes");
  c.example(
      "lm-write generate mdlm/ --kind masked --how random --iterations 16 --length 32 < prompts",
      "masked diffusion: 32 tokens in at most 16 passes");
  commands::add_open_options(c, o->open);
  commands::add_batch_tokens(c, o->open);
  declare_generate_options(c, *o);
  commands::add_digits(c, o->open.digits);
  commands::add_stream(c, o->stream);
  c.flag("--json", o->open.common.json,
         "print one JSON object per text, with its ids, instead of TSV");
  cli::add_csv(c, o->open.common);
  c.action([o, &c](cli::Session& session) { return run(*o, c, session); });
}

}  // namespace masque::lm_write
