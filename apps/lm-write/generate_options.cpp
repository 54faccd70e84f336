#include "generate_options.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/json/json_text.hpp"
#include "base/json/json_writer.hpp"
#include "base/string/comma_list.hpp"
#include "base/string/split.hpp"
#include "base/string/utf8.hpp"
#include "commands/files.hpp"
#include "commands/number_list.hpp"
#include "evaluate/score/sentence.hpp"
#include "model/checkpoint/save.hpp"
#include "store/config.hpp"

namespace masque::lm_write {

namespace {

using evaluate::MaskedWay;

constexpr std::array<std::pair<std::string_view, Continuation>, 3> kKindNames{
    {{"causal", Continuation::kCausal},
     {"unilm", Continuation::kUnilm},
     {"masked", Continuation::kMasked}}};

void need(bool given, bool fits, std::string_view option, std::string_view where) {
  if (given && !fits) throw UsageError(fmt::format("{}: only with {}", option, where));
}

void check_kind(const GenerateOptions& o) {
  const bool masked = o.masked();
  need(o.source.has_value(), o.kind != Continuation::kCausal, "--source", "--kind unilm or masked");
  if (o.source == "-")
    throw UsageError("--source -: standard input has the lines that sources belong to; use a file");
  need(o.max_new_tokens.has_value(), !masked, "--max-new-tokens",
       "--kind causal or unilm; --kind masked has --length");
  need(o.num_beams.has_value(), !masked, "--num-beams", "--kind causal or unilm");
  need(o.eos_token_id.has_value(), !masked, "--eos-token-id", "--kind causal or unilm");
  need(o.ignore_generation_config, o.kind == Continuation::kCausal, "--ignore-generation-config",
       "--kind causal");
  need(o.how.has_value(), masked, "--how", "--kind masked");
  need(o.length.has_value(), masked, "--length", "--kind masked");
  need(o.lead_out.has_value(), masked && o.way() == MaskedWay::kLeftToRight, "--lead-out",
       "--kind masked --how left-to-right");
  need(o.sweeps.has_value(), o.gibbs(), "--sweeps", "--kind masked --how gibbs");
  need(o.order.has_value(), o.gibbs(), "--order", "--kind masked --how gibbs");
  need(o.burn_in.has_value(), o.gibbs(), "--burn-in", "--kind masked --how gibbs");
  const std::int64_t sweeps = o.sweeps.value_or(evaluate::MaskedGenerateOptions().sweeps);
  if (o.burn_in.value_or(0) >= sweeps) {
    throw UsageError(
        fmt::format("--burn-in {}: expected less than --sweeps {}", *o.burn_in, sweeps));
  }
  need(o.iterations.has_value(), (masked && o.way() == MaskedWay::kMaskPredict) || o.unmasks(),
       "--iterations", "--kind masked --how mask-predict, confidence or random");
  need(o.block_size.has_value(), o.unmasks(), "--block-size",
       "--kind masked --how confidence or random");
  if (o.kind == Continuation::kUnilm && o.open.mask)
    throw UsageError("--mask cannot be combined with --kind unilm, which has its own mask");
  if ((o.bos || o.no_bos) && o.kind != Continuation::kCausal) {
    throw UsageError(fmt::format(
        "{} cannot be combined with --kind {}, which begins with its template",
        o.bos ? "--bos" : "--no-bos", name_in(NameTable<Continuation>(kKindNames), o.kind)));
  }
  if (o.bos && o.no_bos) throw UsageError("--bos cannot be combined with --no-bos");
}

/// `ways`: what samples beside --do-sample, in a message; empty if nothing does.
void check_choice(const GenerateOptions& o, const std::string& ways) {
  if ((o.gibbs() || o.ancestral()) && o.do_sample) {
    throw UsageError(
        fmt::format("--do-sample cannot be combined with --how {}, which has its own sampling",
                    name_in(evaluate::masked_way_names(), o.way())));
  }
  if (o.beams() && o.do_sample)
    throw UsageError("expected one of --do-sample and --num-beams greater than 1");
  need(o.length_penalty || o.early_stopping, o.beams(), "--length-penalty and --early-stopping",
       "--num-beams greater than 1");
  const std::string sampling =
      o.gibbs() ? "--burn-in greater than 0, --top-k or --top-p; --burn-in 0 takes the most "
                  "probable token"
                : "--do-sample" + (ways.empty() ? "" : ", or " + ways);
  need(o.temperature.has_value(), o.samples(), "--temperature", sampling);
  need(o.top_k.has_value(), o.samples(), "--top-k", sampling);
  need(o.top_p.has_value(), o.samples(), "--top-p", sampling);
  need(o.seed.has_value(), o.draws(), "--seed", sampling);
  need(o.num_return_sequences > 1, o.draws() || o.beams(), "--num-return-sequences",
       o.gibbs()      ? sampling
       : ways.empty() ? "--do-sample or --num-beams"
                      : "--do-sample, --num-beams, or " + ways);
}

evaluate::SamplingOptions sampling_options(const GenerateOptions& o) {
  evaluate::SamplingOptions out;
  out.do_sample = o.do_sample || o.ancestral() || (o.gibbs() && !o.likeliest_at_last());
  out.temperature = o.temperature.value_or(1);
  out.top_k = o.top_k.value_or(0);
  out.top_p = o.top_p.value_or(1);
  return out;
}

/// The tokens that end a text: those that are requested, else those of the model's files, else the
/// tokenizer's.
std::vector<TokenId> ends_of(const GenerateOptions& o, const commands::OpenedModel& opened) {
  std::vector<TokenId> ends;
  if (o.eos_token_id) {
    const Index last = opened.model->design().vocab_size - 1;
    for (const double id :
         commands::parse_numbers("eos_token_id", *o.eos_token_id, 0, static_cast<double>(last))) {
      if (id != std::floor(id))
        throw UsageError(fmt::format("--eos-token-id {}: expected ids", *o.eos_token_id));
      ends.push_back(static_cast<TokenId>(id));
    }
    return ends;
  }
  if (const auto stated = evaluate::read_generation_config(opened.path).ends) {
    for (const TokenId id : *stated) {
      if (id < opened.model->design().vocab_size && std::ranges::find(ends, id) == ends.end())
        ends.push_back(id);
    }
  }
  if (!ends.empty()) return ends;
  const text::Roles& roles = opened.tokenizer->roles();
  for (const std::optional<TokenId>& end : {roles.eos, roles.sep}) {
    if (end && std::ranges::find(ends, *end) == ends.end()) ends.push_back(*end);
  }
  return ends;
}

/// Whether the command line sets what `name` of generation_config.json sets.
bool is_given(const GenerateOptions& o, std::string_view name) {
  return (name == "do_sample" && o.do_sample) || (name == "temperature" && o.temperature) ||
         (name == "top_k" && o.top_k) || (name == "top_p" && o.top_p) ||
         (name == "num_beams" && o.num_beams) || (name == "length_penalty" && o.length_penalty) ||
         (name == "early_stopping" && o.early_stopping) ||
         (name == "num_return_sequences" && o.num_return_sequences > 1) ||
         ((name == "max_new_tokens" || name == "max_length") && o.max_new_tokens);
}

std::string listed(const std::vector<evaluate::GenerationSetting>& settings) {
  return comma_list(settings, [](const evaluate::GenerationSetting& setting) {
    return setting.name + " " + setting.text;
  });
}

void add_way(JsonWriter& json, const GenerateOptions& o,
             const evaluate::MaskedGenerateOptions& options) {
  json.member("how", name_in(evaluate::masked_way_names(), options.how));
  json.member("length", o.new_tokens());
  switch (options.how) {
    case MaskedWay::kLeftToRight:
      if (options.lead_out) json.member("lead_out", *options.lead_out);
      break;
    case MaskedWay::kGibbs:
      json.member("sweeps", options.sweeps);
      json.member("order", name_in(evaluate::sweep_order_names(), options.order));
      json.member("burn_in", options.burn_in);
      break;
    case MaskedWay::kMaskPredict: json.member("iterations", options.iterations); break;
    case MaskedWay::kConfidence:
    case MaskedWay::kRandom:
      if (o.iterations) json.member("iterations", *o.iterations);
      if (o.block_size) json.member("block_size", *o.block_size);
      break;
  }
}

}  // namespace

void declare_text_options(cli::Command& c, GenerateOptions& o) {
  c.option("--max-new-tokens", "N", o.max_new_tokens, cli::AllowedRange{1, 1e9},
           "maximum number of new tokens; an end token or the model's last position ends a text "
           "earlier [20]");
  c.option("--eos-token-id", "IDS", o.eos_token_id,
           "ids of the end tokens, as 2,3 [eos_token_id of generation_config.json or config.json; "
           "else the tokenizer's eos and sep]");
  c.flag("--do-sample", o.do_sample, "sample tokens from the softmax instead of greedy decoding");
  c.option("--temperature", "X", o.temperature, cli::AllowedRange{1e-6, 1e6},
           "divide the logits by X [1]");
  c.option("--top-k", "K", o.top_k, cli::AllowedRange{0, 1e9},
           "sample from the K most probable tokens [0: from all]");
  c.option("--top-p", "P", o.top_p, cli::AllowedRange{1e-9, 1},
           "sample from the most probable tokens whose total probability reaches P [1]");
  c.option("--num-return-sequences", "N", o.num_return_sequences, cli::AllowedRange{1, 1e9},
           "samples per line, or best texts of its beam search");
  cli::add_seed(c, o.seed, "seed of the samples");
  c.option("--num-beams", "N", o.num_beams, cli::AllowedRange{1, 1e4},
           "beam search with N open texts per line [1: no beam search]");
  c.option("--length-penalty", "A", o.length_penalty, cli::AllowedRange{-1e3, 1e3},
           "score a text of n tokens by log p / n^A [1]");
  c.choice("--early-stopping", o.early_stopping, evaluate::early_stopping_names(),
           "a search with N finished texts ends: true: at once; false: when no open text looks "
           "better now; never: when none can become better [false]");
}

void declare_generate_options(cli::Command& c, GenerateOptions& o) {
  c.choice("--kind", o.kind, NameTable<Continuation>(kKindNames),
           "causal: each line is the beginning of a text; unilm: a source, and the target is "
           "written; masked: a beginning, followed by masks");
  c.option("--source", "FILE", o.source,
           "sources, one line for each line of standard input, which then begins the target");
  declare_text_options(c, o);
  c.flag("--bos", o.bos,
         "put the bos (or eos) token in front if the template has no first token [if lm-train "
         "trained the model with it]; empty lines always get it");
  c.flag("--no-bos", o.no_bos, "do not put it in front");
  c.flag("--ignore-generation-config", o.ignore_generation_config,
         "accept settings of generation_config.json that would change the tokens and are not "
         "supported, such as repetition_penalty");
  c.choice("--how", o.how, evaluate::masked_way_names(),
           "how --kind masked fills its masks [left-to-right]");
  c.option("--length", "N", o.length, cli::AllowedRange{1, 1e6},
           "number of tokens that --kind masked writes after each line [20]");
  c.option("--lead-out", "N", o.lead_out, cli::AllowedRange{0, 1e6},
           "masks that left-to-right reads after the current one [all]");
  c.option("--sweeps", "N", o.sweeps, cli::AllowedRange{1, 1e6},
           "number of times gibbs samples every mask [20]");
  c.choice("--order", o.order, evaluate::sweep_order_names(),
           "order of the masks in each sweep of gibbs [sequential]");
  c.option("--burn-in", "N", o.burn_in, cli::AllowedRange{0, 1e6},
           "first sweeps of gibbs, which sample from all tokens; later ones take the most probable "
           "token, or sample by --top-k and --top-p [all sweeps sample]");
  c.option(
      "--iterations", "N", o.iterations, cli::AllowedRange{1, 1e6},
      "passes of mask-predict [10]; steps per block of confidence and random [one step per mask]");
  c.option("--block-size", "B", o.block_size, cli::AllowedRange{1, 1e6},
           "confidence and random write blocks of B masks from left to right [all at once; a model "
           "of block diffusion: its own blocks]");
}

void check_generate_options(const GenerateOptions& options) {
  check_kind(options);
  check_choice(options, "--how gibbs or random");
}

void check_text_options(const GenerateOptions& options) { check_choice(options, ""); }

void check_generation_config(const GenerateOptions& o, const commands::OpenedModel& opened,
                             cli::Session& session) {
  if (o.kind != Continuation::kCausal) return;
  const evaluate::GenerationConfig config = evaluate::read_generation_config(opened.path);
  // What is in force: by the command, or by the file that asks for it.
  const auto applies = [&](const evaluate::GenerationSetting& setting, bool in_file) {
    switch (setting.scope) {
      case evaluate::GenerationScope::kSampling:
        return o.samples() || (in_file && config.do_sample);
      case evaluate::GenerationScope::kBeams: return o.beams() || (in_file && config.beams);
      case evaluate::GenerationScope::kAlways: break;
    }
    return true;
  };
  std::vector<evaluate::GenerationSetting> unsupported, others;
  for (const evaluate::GenerationSetting& setting : config.unsupported) {
    if (applies(setting, false)) unsupported.push_back(setting);
  }
  for (const evaluate::GenerationSetting& setting : config.defaults) {
    if (applies(setting, true) && !is_given(o, setting.name)) others.push_back(setting);
  }
  if (!unsupported.empty() && !o.ignore_generation_config) {
    throw InputError(config.path, fmt::format("{} would change the tokens and is not supported; "
                                              "--ignore-generation-config generates without it",
                                              listed(unsupported)));
  }
  const std::string path = escape(config.path);
  if (!unsupported.empty()) session.note(fmt::format("{}: ignored: {}", path, listed(unsupported)));
  if (!others.empty()) {
    session.note(
        fmt::format("{}: not applied: {}; options of these names set them", path, listed(others)));
  }
  if (!config.unknown.empty()) {
    session.note(fmt::format(
        "{}: not used: {}", path,
        comma_list(config.unknown, [](const std::string& name) { return escape(name); })));
  }
  if (o.eos_token_id) return;
  if (!config.ends) {
    // transformers' generate has no end then; it does not know masque's own models.
    const bool in_model = !config.path.ends_with("generation_config.json");
    if (config.path.empty() || (in_model && opened.model->design().family == "masque")) return;
    if (ends_of(o, opened).empty()) return;
    session.note(fmt::format("{}: no eos_token_id; the tokenizer's eos and sep end a text", path));
    return;
  }
  std::vector<std::string> beyond;
  for (const TokenId id : *config.ends) {
    if (id >= opened.model->design().vocab_size) beyond.push_back(std::to_string(id));
  }
  if (!beyond.empty()) {
    session.note(fmt::format(
        "{}: eos_token_id {}: not in the vocabulary of {} tokens{}", path, comma_list(beyond),
        opened.model->design().vocab_size,
        beyond.size() == config.ends->size() ? "; the tokenizer's eos and sep end a text" : ""));
  }
}

evaluate::GenerateOptions generate_options(const GenerateOptions& o,
                                           const commands::OpenedModel& opened) {
  evaluate::GenerateOptions options;
  options.sampling = sampling_options(o);
  options.max_new_tokens = o.new_tokens();
  options.num_return_sequences = o.num_return_sequences;
  options.seed = o.seed.value_or(0);
  options.to_target = o.kind == Continuation::kUnilm;
  options.beams.num_beams = o.num_beams.value_or(1);
  options.beams.length_penalty = o.length_penalty.value_or(1);
  options.beams.early_stopping = o.early_stopping.value_or(evaluate::EarlyStopping::kFalse);
  options.ends = ends_of(o, opened);
  evaluate::check_beams(options, opened.model->design().vocab_size);
  return options;
}

evaluate::MaskedGenerateOptions masked_options(const GenerateOptions& o,
                                               const commands::OpenedModel& opened) {
  evaluate::MaskedGenerateOptions options;
  options.how = o.way();
  options.sampling = sampling_options(o);
  options.num_return_sequences = o.num_return_sequences;
  options.seed = o.seed.value_or(0);
  options.lead_out = o.lead_out;
  options.sweeps = o.sweeps.value_or(options.sweeps);
  options.order = o.order.value_or(options.order);
  options.burn_in = o.burn_in.value_or(0);
  options.iterations = o.iterations.value_or(options.iterations);
  options.unmask_iterations = o.iterations.value_or(0);
  options.block_size = o.block_size.value_or(0);
  options.writer.never = {*opened.tokenizer->roles().mask};
  options.writer.batch_tokens = o.open.batch_tokens;
  options.writer.mask_of = opened.mask_of;
  return options;
}

bool begins_texts(const GenerateOptions& o, const commands::OpenedModel& opened) {
  if (o.bos || o.no_bos || o.kind != Continuation::kCausal) return o.bos;
  const auto config = store::ModelConfig::find(opened.path);
  const auto trained = config ? config->size(model::kBeginToken) : std::nullopt;
  const auto begin = evaluate::begin_token(*opened.tokenizer);
  return trained && begin && *trained == static_cast<std::uint64_t>(*begin);
}

std::string generate_description(const GenerateOptions& o) {
  if (o.masked()) {
    return fmt::format("{}, {} tokens", name_in(evaluate::masked_way_names(), o.way()),
                       o.new_tokens());
  }
  const std::string how = o.beams()     ? fmt::format("{} beams", *o.num_beams)
                          : o.do_sample ? "sampled"
                                        : "greedy";
  return fmt::format("{}, at most {} tokens", how, o.new_tokens());
}

std::string generate_provenance(const GenerateOptions& o, const commands::OpenedModel& opened) {
  std::string out;
  JsonWriter json(out);
  json.member("model", opened.path);
  json.member("kind", name_in(NameTable<Continuation>(kKindNames), o.kind));
  json.member("precision", kernel::precision_name(opened.model->precision()));
  commands::add_given(json, opened.given);
  if (o.source) json.member("source", *o.source);
  if (o.masked()) {
    add_way(json, o, masked_options(o, opened));
  } else {
    json.member("max_new_tokens", o.new_tokens());
    if (o.eos_token_id) json.key("eos_token_id").array(ends_of(o, opened));
  }
  const evaluate::SamplingOptions sampling = sampling_options(o);
  json.member("do_sample", o.samples());
  if (o.samples()) {
    json.member("temperature", sampling.temperature).member("top_k", sampling.top_k);
    json.member("top_p", sampling.top_p);
  }
  if (o.draws()) json.member("seed", o.seed.value_or(0));
  if (o.beams()) {
    const evaluate::BeamOptions beams = generate_options(o, opened).beams;
    json.member("num_beams", beams.num_beams).member("length_penalty", beams.length_penalty);
    json.member("early_stopping", name_in(evaluate::early_stopping_names(), beams.early_stopping));
  }
  if (o.kind == Continuation::kCausal) json.member("bos", begins_texts(o, opened));
  return out;
}

Sources::Sources(const std::string& path) : path_(path), text_(commands::read_file(path)) {
  refuse_json(text_, input_name(path_));
  lines_ = split_terminated(text_, '\n');
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    lines_[i] = without_return(lines_[i]);
    if (!valid_utf8(lines_[i])) {
      throw InputError(input_name(path_), fmt::format("line {}: not UTF-8", i + 1));
    }
  }
}

void Sources::refuse() const {
  throw InputError(input_name(path_),
                   fmt::format("{} lines, expected as many as on standard input", lines_.size()));
}

std::string_view Sources::line(std::uint64_t id) const {
  if (id >= lines_.size()) refuse();
  return lines_[id];
}

void Sources::check_count(std::uint64_t lines) const {
  if (lines != lines_.size()) refuse();
}

Prompts::Prompts(const commands::OpenedModel& opened, Continuation kind, const Sources* sources,
                 bool bos)
    : opened_(opened), kind_(kind), sources_(sources), encoder_(opened.tokenizer->id_encoder({})) {
  const text::Tokenizer& tokenizer = *opened.tokenizer;
  const bool pairs = kind == Continuation::kUnilm || sources != nullptr;
  around_ = pairs ? text::pair_tokens(tokenizer) : text::template_tokens(tokenizer, 1);
  if (around_.before.empty()) begin_ = evaluate::begin_token(tokenizer);
  if (bos && begin_) around_.before.push_back(*begin_);
}

evaluate::Prompt Prompts::prompt(std::uint64_t id, std::string_view line) {
  evaluate::Prompt out{.id = id, .ids = around_.before};
  const bool pairs = kind_ == Continuation::kUnilm || sources_ != nullptr;
  encoder_.encode(sources_ != nullptr ? sources_->line(id) : line, out.ids);
  if (out.ids.empty() && begin_ && kind_ != Continuation::kMasked) out.ids.push_back(*begin_);
  if (pairs) {
    out.ids.insert(out.ids.end(), around_.between.begin(), around_.between.end());
    out.source = std::ssize(out.ids);
  }
  if (sources_ != nullptr) encoder_.encode(line, out.ids);
  return out;
}

evaluate::MaskedText Prompts::masked(std::uint64_t id, std::string_view line, Index count) {
  const evaluate::Prompt begin = prompt(id, line);
  evaluate::MaskedText out;
  out.id = id;
  std::vector<TokenId>& ids = out.sentence.ids;
  ids = begin.ids;
  out.places.resize(static_cast<std::size_t>(count));
  std::iota(out.places.begin(), out.places.end(), std::ssize(ids));
  ids.insert(ids.end(), static_cast<std::size_t>(count), *opened_.tokenizer->roles().mask);
  ids.insert(ids.end(), around_.after.begin(), around_.after.end());
  if (begin.source > 0 && opened_.model->design().type_vocab_size >= 2) {
    out.sentence.segments.assign(ids.size(), 1);
    std::fill_n(out.sentence.segments.begin(), begin.source, 0);
  }
  return out;
}

}  // namespace masque::lm_write
