#include "generate_options.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
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
#include "base/thread/parallel.hpp"
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

/// "confidence, margin, … or random": the ways that fill a few masks at a time.
std::string unmasking_ways() {
  std::vector<std::string_view> names;
  for (const auto& [name, way] : evaluate::masked_way_names()) {
    if (evaluate::unmask_order(way)) names.push_back(name);
  }
  const std::string_view last = names.back();
  names.pop_back();
  return fmt::format("{} or {}", comma_list(names), last);
}

void need(bool given, bool fits, std::string_view option, std::string_view where) {
  if (given && !fits) throw UsageError(fmt::format("{}: only with {}", option, where));
}

void check_kind(const GenerateOptions& o) {
  const bool masked = o.masked();
  if (o.source == "-")
    throw UsageError("--source -: standard input has the lines that sources belong to; use a file");
  need(o.max_new_tokens.has_value(), !masked, "--max-new-tokens",
       "--kind causal or unilm; --kind masked has --length");
  need(o.num_beams.has_value(), !masked, "--num-beams", "--kind causal or unilm");
  need(o.eos_token_id.has_value(), !masked, "--eos-token-id", "--kind causal or unilm");
  need(o.ignore_generation_config, o.kind == Continuation::kCausal, "--ignore-generation-config",
       "--kind causal");
  for (const std::string_view name : evaluate::stated_processors(o))
    need(true, !masked, field(name), "--kind causal or unilm");
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
       "--iterations", "--kind masked --how mask-predict, " + unmasking_ways());
  need(o.block_size.has_value(), o.unmasks(), "--block-size",
       "--kind masked --how " + unmasking_ways());
  const bool ranks = masked && (o.way() == MaskedWay::kConfidence ||
                                o.way() == MaskedWay::kMargin || o.way() == MaskedWay::kEntropy);
  need(o.order_temperature.has_value(), ranks, "--order-temperature",
       "--kind masked --how confidence, margin or entropy");
  need(o.times.has_value(), o.unmasks(), "--times", "--kind masked --how " + unmasking_ways());
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
  if ((o.gibbs() || o.ancestral()) && o.do_sample == true) {
    throw UsageError(
        fmt::format("--do-sample cannot be combined with --how {}, which has its own sampling",
                    name_in(evaluate::masked_way_names(), o.way())));
  }
  if (o.beams() && o.do_sample == true)
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
  for (const std::string_view name : evaluate::stated_processors(o))
    need(evaluate::is_of_sampling(name), o.samples(), field(name), sampling);
  const std::string drawing = o.gibbs() || ways.empty() ? sampling : sampling + " or shuffled";
  need(o.seed.has_value(), o.draws(), "--seed", drawing);
  need(o.texts() > 1, o.draws() || o.beams(), "--num-return-sequences",
       o.gibbs()      ? sampling
       : ways.empty() ? "--do-sample or --num-beams"
                      : "--do-sample, --num-beams, or " + ways + " or shuffled");
}

evaluate::SamplingOptions sampling_options(const GenerateOptions& o) {
  evaluate::SamplingOptions out;
  out.do_sample = o.do_sample.value_or(o.ancestral()) || (o.gibbs() && !o.likeliest_at_last());
  out.temperature = o.temperature.value_or(1);
  out.top_k = o.top_k.value_or(0);
  out.top_p = o.top_p.value_or(1);
  out.min_p = o.min_p.value_or(0);
  out.typical_p = o.typical_p.value_or(1);
  out.epsilon_cutoff = o.epsilon_cutoff.value_or(0);
  out.eta_cutoff = o.eta_cutoff.value_or(0);
  return out;
}

/// The ids of `list`, up to `last`, the value of the option `name`.
std::vector<TokenId> parse_ids(std::string_view name, std::string_view list, Index last) {
  std::vector<TokenId> ids;
  for (const double id : commands::parse_numbers(name, list, 0, static_cast<double>(last))) {
    if (id != std::floor(id))
      throw UsageError(fmt::format("{} {}: expected ids", field(name), list));
    ids.push_back(static_cast<TokenId>(id));
  }
  return ids;
}

/// The tokens that end a text: those that are requested, else those of the model's files, else the
/// tokenizer's.
std::vector<TokenId> ends_of(const GenerateOptions& o, const commands::OpenedModel& opened) {
  std::vector<TokenId> ends;
  if (o.eos_token_id) {
    return parse_ids("eos_token_id", *o.eos_token_id, opened.model->design().vocab_size - 1);
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

/// Runs `check` of settled options. What it throws of a setting that the model's file has given
/// names the file.
void check_settled(const GenerateOptions& o, const std::function<void()>& check) {
  std::optional<std::string> input;
  const std::optional<std::string> usage =
      usage_error_message([&] { input = input_error_message(check); });
  if (!usage && !input) return;
  const std::string message = usage ? *usage : *input;
  const auto in_file = [&](std::string_view name) {
    return std::ranges::find(o.from_config, name) != o.from_config.end();
  };
  const bool about_file = std::ranges::any_of(
      o.from_config, [&](const std::string& name) { return message.starts_with(field(name)); });
  const std::string spelled = spell_fields(message, [&](std::string_view name) {
    if (!in_file(name)) return field(name);
    return about_file ? std::string(name) : fmt::format("{} of {}", name, escape(o.config_path));
  });
  if (about_file) throw InputError(o.config_path, spelled);
  if (input) throw InputError(spelled);
  throw UsageError(spelled);
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
    case MaskedWay::kMargin:
    case MaskedWay::kEntropy:
    case MaskedWay::kShuffled:
    case MaskedWay::kRandom:
      if (o.order_temperature) json.member("order_temperature", *o.order_temperature);
      if (o.times) json.member("times", name_in(evaluate::unmask_times_names(), *o.times));
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
  c.flag("--do-sample", o.sample, "sample tokens from the softmax instead of greedy decoding");
  c.flag("--no-do-sample", o.no_sample,
         "greedy decoding, or beam search, where generation_config.json asks for samples; of --how "
         "random the most probable tokens, at random places");
  c.option("--temperature", "X", o.temperature, cli::AllowedRange{1e-6, 1e6},
           "divide the logits by X [1]");
  c.option("--top-k", "K", o.top_k, cli::AllowedRange{0, 1e9},
           "sample from the K most probable tokens [0: from all]");
  c.option("--top-p", "P", o.top_p, cli::AllowedRange{1e-9, 1},
           "sample from the most probable tokens whose total probability reaches P [1]");
  c.option("--min-p", "P", o.min_p, cli::AllowedRange{0, 1},
           "sample from the tokens with at least P times the greatest probability [0]");
  c.option("--typical-p", "P", o.typical_p, cli::AllowedRange{1e-9, 1},
           "sample from the tokens whose surprisal is nearest to the entropy, until their "
           "probability reaches P [1]");
  c.option("--epsilon-cutoff", "E", o.epsilon_cutoff, cli::AllowedRange{0, 0.999999},
           "sample from the tokens with at least probability E [0]");
  c.option("--eta-cutoff", "E", o.eta_cutoff, cli::AllowedRange{0, 0.999999},
           "sample from the tokens with at least probability min(E, √E · exp(-entropy)) [0]");
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
  c.option(
      "--repetition-penalty", "X", o.repetition_penalty, cli::AllowedRange{1e-6, 1e6},
      "divide positive logits of tokens that the text has by X, and multiply negative ones [1]");
  c.option("--no-repeat-ngram-size", "N", o.no_repeat_ngram_size, cli::AllowedRange{0, 1e9},
           "no N tokens follow each other twice in a text [0: they may]");
  c.option("--min-length", "N", o.min_length, cli::AllowedRange{0, 1e9},
           "no end token before the text has N tokens, with the prompt [0]");
  c.option("--min-new-tokens", "N", o.min_new_tokens, cli::AllowedRange{0, 1e9},
           "no end token before N new tokens; replaces --min-length");
  c.option("--bad-words-ids", "IDS", o.bad_words,
           "a word, as ids, that may not be written; may be given several times");
  c.option("--suppress-tokens", "IDS", o.suppressed, "ids of tokens that may not be written");
  c.option("--begin-suppress-tokens", "IDS", o.begin_suppressed,
           "ids of tokens that may not be the first new token");
  c.option("--forced-bos-token-id", "ID", o.forced_bos_token_id, cli::AllowedRange{0, 1e9},
           "the token after a prompt of one token");
  c.option("--forced-eos-token-id", "IDS", o.forced_eos,
           "ids of the only tokens that may be the last one of a text of the greatest length");
}

void declare_generate_options(cli::Command& c, GenerateOptions& o) {
  c.choice("--kind", o.kind, NameTable<Continuation>(kKindNames),
           "causal: each line is the beginning of a text, or the source of an encoder–decoder, "
           "whose target is written; unilm: a source, and the target is written; masked: a "
           "beginning, followed by masks");
  c.option("--source", "FILE", o.source,
           "sources, one line for each line of standard input, which then begins the target");
  c.option("--decoder-start-token-id", "ID", o.decoder_start_token_id, cli::AllowedRange{0, 1e9},
           "the token in front of the targets of an encoder–decoder [the model's]");
  declare_text_options(c, o);
  c.flag("--bos", o.bos,
         "put the bos (or eos) token in front if the template has no first token [if lm-train "
         "trained the model with it]; empty lines always get it");
  c.flag("--no-bos", o.no_bos, "do not put it in front");
  c.flag("--ignore-generation-config", o.ignore_generation_config,
         "use only the end tokens of generation_config.json");
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
  c.option("--iterations", "N", o.iterations, cli::AllowedRange{1, 1e6},
           fmt::format("passes of mask-predict [10]; steps per block of {} [one step per mask]",
                       unmasking_ways()));
  c.option("--block-size", "B", o.block_size, cli::AllowedRange{1, 1e6},
           "the same write blocks of B masks from left to right [all at once; a model of block "
           "diffusion: its own blocks]");
  c.choice("--times", o.times, evaluate::unmask_times_names(),
           "how many masks their steps fill: even: as many at each (LLaDA); epsilon: of the masks "
           "that are left the share (t - s)/t, with t from 1 to 0.001 (Dream) [even]");
  c.option(
      "--order-temperature", "X", o.order_temperature, cli::AllowedRange{1e-6, 1e6},
      "confidence, margin and entropy draw the places of a step, with probabilities "
      "proportional to exp(confidence/X) (Dream's alg_temp) [those of the highest confidence]");
}

GenerateOptions settled(const GenerateOptions& options, cli::Session& session) {
  GenerateOptions o = options;
  if (o.sample && o.no_sample)
    throw UsageError("--do-sample cannot be combined with --no-do-sample");
  if (o.sample || o.no_sample) o.do_sample = o.sample;
  const auto ids = [](std::string_view name, std::string_view list) {
    return parse_ids(name, list, INT32_MAX);
  };
  if (o.forced_eos) o.forced_eos_token_id = ids("forced_eos_token_id", *o.forced_eos);
  if (o.suppressed) o.suppress_tokens = ids("suppress_tokens", *o.suppressed);
  if (o.begin_suppressed)
    o.begin_suppress_tokens = ids("begin_suppress_tokens", *o.begin_suppressed);
  for (const std::string& word : o.bad_words) {
    if (!o.bad_words_ids) o.bad_words_ids.emplace();
    o.bad_words_ids->push_back(ids("bad_words_ids", word));
  }
  if (o.kind != Continuation::kCausal || o.ignore_generation_config) return o;
  const evaluate::GenerationConfig config = evaluate::read_generation_config(o.open.model);
  const bool had_number = o.num_return_sequences.has_value();
  const bool had_way = o.do_sample.has_value() && o.num_beams.has_value();
  const std::vector<evaluate::GenerationSetting> used =
      evaluate::use_generation_defaults(config, o);
  o.config_path = config.path;
  for (const evaluate::GenerationSetting& setting : used) o.from_config.push_back(setting.name);
  const auto in_file = [&](std::string_view name) {
    return std::ranges::find(o.from_config, name) != o.from_config.end();
  };
  if (o.do_sample == true && o.beams() && in_file("do_sample") != in_file("num_beams")) {
    const bool sampled = !in_file("do_sample");
    throw UsageError(fmt::format(
        "{}: {} has {}, and beam search with sampling is not supported; use {} or "
        "--ignore-generation-config",
        sampled ? "--do-sample" : fmt::format("--num-beams {}", *o.num_beams), escape(config.path),
        sampled ? fmt::format("num_beams {}", *o.num_beams) : "do_sample true",
        sampled ? "--num-beams 1" : "--no-do-sample"));
  }
  if (o.do_sample == true && o.beams() && !had_way) {
    throw InputError(
        config.path,
        "do_sample true and num_beams greater than 1, beam search with sampling, is not supported; "
        "use --no-do-sample, --num-beams 1 or --ignore-generation-config");
  }
  if (!had_number && o.texts() > 1 && o.do_sample != true && !o.beams()) {
    throw InputError(config.path,
                     fmt::format("num_return_sequences is {}, expected 1 with greedy decoding; use "
                                 "--num-return-sequences 1",
                                 o.texts()));
  }
  if (!used.empty()) session.note(fmt::format("{}: used: {}", escape(config.path), listed(used)));
  return o;
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
  // What is in force.
  const auto applies = [&](const evaluate::GenerationSetting& setting) {
    switch (setting.scope) {
      case evaluate::GenerationScope::kSampling: return o.samples();
      case evaluate::GenerationScope::kBeams: return o.beams();
      case evaluate::GenerationScope::kAlways: break;
    }
    return true;
  };
  std::vector<evaluate::GenerationSetting> unsupported, ignored;
  std::ranges::copy_if(config.unsupported, std::back_inserter(unsupported), applies);
  if (!unsupported.empty() && !o.ignore_generation_config) {
    throw InputError(config.path, fmt::format("{} would change the tokens and is not supported; "
                                              "--ignore-generation-config generates without it",
                                              listed(unsupported)));
  }
  const std::string path = escape(config.path);
  if (o.ignore_generation_config) {
    ignored = config.defaults;
    ignored.insert(ignored.end(), unsupported.begin(), unsupported.end());
  }
  if (!ignored.empty()) session.note(fmt::format("{}: ignored: {}", path, listed(ignored)));
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
  options.processors = o;
  options.sampling = sampling_options(o);
  options.max_new_tokens = o.new_tokens();
  if (!o.max_new_tokens) options.max_length = o.max_length.value_or(0);
  options.num_return_sequences = o.texts();
  options.seed = o.seed.value_or(0);
  options.to_target = o.kind == Continuation::kUnilm;
  options.beams.num_beams = o.num_beams.value_or(1);
  options.beams.length_penalty = o.length_penalty.value_or(1);
  options.beams.early_stopping = o.early_stopping.value_or(evaluate::EarlyStopping::kFalse);
  options.ends = ends_of(o, opened);
  const Index vocabulary = opened.model->design().vocab_size;
  check_settled(o, [&] {
    evaluate::check_beams(options, vocabulary);
    evaluate::check_logits_processors(options.processors, vocabulary);
  });
  return options;
}

evaluate::MaskedGenerateOptions masked_options(const GenerateOptions& o,
                                               const commands::OpenedModel& opened) {
  evaluate::MaskedGenerateOptions options;
  options.how = o.way();
  options.sampling = sampling_options(o);
  options.num_return_sequences = o.texts();
  options.seed = o.seed.value_or(0);
  options.lead_out = o.lead_out;
  options.sweeps = o.sweeps.value_or(options.sweeps);
  options.order = o.order.value_or(options.order);
  options.burn_in = o.burn_in.value_or(0);
  options.iterations = o.iterations.value_or(options.iterations);
  options.unmask_iterations = o.iterations.value_or(0);
  options.block_size = o.block_size.value_or(0);
  options.times = o.times.value_or(options.times);
  options.order_temperature = o.order_temperature.value_or(0);
  options.writer.never = {*opened.tokenizer->roles().mask};
  options.writer.batch_tokens = o.open.batch_tokens;
  options.writer.mask_of = opened.mask_of;
  return options;
}

bool begins_texts(const GenerateOptions& o, const commands::OpenedModel& opened) {
  if (o.no_bos && !text::template_tokens(*opened.tokenizer, 1).before.empty()) {
    throw UsageError(fmt::format(
        "--no-bos has no effect: the template of the tokenizer {} puts a token in front "
        "of each text; remove it",
        opened.tokenizer->parts().path));
  }
  if (o.bos || o.no_bos || o.kind != Continuation::kCausal) return o.bos;
  if (opened.model->encoder() != nullptr) return false;
  const auto config = store::ModelConfig::find(opened.path);
  const auto trained = config ? config->size(model::kBeginToken) : std::nullopt;
  const auto begin = evaluate::begin_token(*opened.tokenizer);
  return trained && begin && *trained == static_cast<std::uint64_t>(*begin);
}

std::optional<TokenId> target_begin(const GenerateOptions& o, const commands::OpenedModel& opened) {
  const bool decodes = opened.model->encoder() != nullptr;
  const bool causal = o.kind == Continuation::kCausal;
  need(o.source.has_value(), decodes || !causal, "--source",
       "--kind unilm or masked, or an encoder–decoder");
  need(o.decoder_start_token_id.has_value(), decodes, "--decoder-start-token-id",
       "an encoder–decoder");
  if (!decodes) return std::nullopt;
  need(o.bos || o.no_bos, false, "--bos and --no-bos", "models without an encoder");
  const Index vocabulary = opened.model->design().vocab_size;
  const auto checked = [&](std::int64_t id) {
    if (id < vocabulary) return static_cast<TokenId>(id);
    throw InputError(opened.path,
                     fmt::format("decoder_start_token_id {}: not in the vocabulary of {} tokens",
                                 id, vocabulary));
  };
  if (o.decoder_start_token_id) return checked(*o.decoder_start_token_id);
  if (const auto stated = evaluate::read_generation_config(opened.path).decoder_start)
    return checked(*stated);
  if (const auto own = opened.model->design().source->start_token_id) return checked(*own);
  throw InputError(opened.path,
                   "no decoder_start_token_id and no bos_token_id in its files, expected one: it "
                   "begins each target; use --decoder-start-token-id");
}

std::string generate_description(const GenerateOptions& o) {
  if (o.masked()) {
    return fmt::format("{}, {} tokens", name_in(evaluate::masked_way_names(), o.way()),
                       o.new_tokens());
  }
  const std::string how = o.beams()     ? fmt::format("{} beams", *o.num_beams)
                          : o.samples() ? "sampled"
                                        : "greedy";
  if (o.max_length && !o.max_new_tokens)
    return fmt::format("{}, at most {} tokens with the prompt", how, *o.max_length);
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
    if (o.max_length && !o.max_new_tokens) {
      json.member("max_length", *o.max_length);
    } else {
      json.member("max_new_tokens", o.new_tokens());
    }
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
  evaluate::add_processors(o, json);
  if (const auto begin = target_begin(o, opened)) {
    json.member("decoder_start_token_id", *begin);
  } else if (o.kind == Continuation::kCausal) {
    json.member("bos", begins_texts(o, opened));
  }
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
                 bool bos, std::optional<TokenId> target_begin)
    : opened_(opened),
      kind_(kind),
      sources_(sources),
      encoder_(opened.tokenizer->id_encoder({})),
      target_begin_(target_begin) {
  const text::Tokenizer& tokenizer = *opened.tokenizer;
  const bool pairs = !target_begin && (kind == Continuation::kUnilm || sources != nullptr);
  around_ = pairs ? text::pair_tokens(tokenizer) : text::template_tokens(tokenizer, 1);
  if (around_.before.empty()) begin_ = evaluate::begin_token(tokenizer);
  if (bos && begin_) around_.before.push_back(*begin_);
}

evaluate::Prompt Prompts::prompt(std::uint64_t id, std::string_view line) {
  if (target_begin_) {
    evaluate::Prompt out{.id = id, .ids = {*target_begin_}};
    out.encoder_ids = around_.before;
    encoder_.encode(sources_ != nullptr ? sources_->line(id) : line, out.encoder_ids);
    out.encoder_ids.insert(out.encoder_ids.end(), around_.after.begin(), around_.after.end());
    if (sources_ != nullptr) encoder_.encode(line, out.ids);
    return out;
  }
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
