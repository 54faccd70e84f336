#include "vector_options.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json.hpp"
#include "base/string/split.hpp"
#include "cli/shared_options.hpp"
#include "commands/scoring.hpp"
#include "evaluate/score/length_policy.hpp"
#include "text/tokenizer.hpp"

namespace masque::lm_score {

namespace {

using evaluate::SentencePooling;

constexpr std::array<std::pair<std::string_view, LongTexts>, 3> kLongTexts{
    {{"error", LongTexts::kError}, {"truncate", LongTexts::kTruncate}, {"skip", LongTexts::kSkip}}};

/// What was requested, what the folder says, or what suits the model.
std::vector<SentencePooling> choose_poolings(const VectorCommand& options,
                                             const evaluate::SentenceFolder& folder,
                                             const model::Design& design) {
  if (options.pooling) {
    std::vector<SentencePooling> out;
    for (const std::string_view name : split(*options.pooling, ','))
      out.push_back(named_value("pooling", name, evaluate::pooling_names()));
    if (out.size() > 1 && std::ranges::find(out, SentencePooling::kFirstLast) != out.end())
      throw UsageError("--pooling: first-last cannot be combined with other poolings");
    return out;
  }
  if (!folder.poolings.empty()) return folder.poolings;
  return {design.streams == model::Streams::kFixedKeys ? SentencePooling::kTta
                                                       : SentencePooling::kMean};
}

std::string names_of(const std::vector<SentencePooling>& poolings) {
  std::string out;
  for (const SentencePooling pooling : poolings)
    out += (out.empty() ? "" : ",") + std::string(name_in(evaluate::pooling_names(), pooling));
  return out;
}

/// The text in front of each text.
std::string choose_prompt(const VectorCommand& options, const evaluate::SentenceFolder& folder) {
  if (options.prompt && options.prompt_name)
    throw UsageError("--prompt and --prompt-name cannot be combined");
  if (options.prompt) return *options.prompt;
  const auto& name = options.prompt_name ? options.prompt_name : folder.default_prompt_name;
  if (!name) return {};
  const auto found =
      std::ranges::find(folder.prompts, *name, &std::pair<std::string, std::string>::first);
  if (found != folder.prompts.end()) return found->second;
  if (!options.prompt_name) return {};
  std::string names;
  for (const auto& [known, text] : folder.prompts)
    names += (names.empty() ? "one of " : ", ") + escape(known);
  throw UsageError(fmt::format("--prompt-name {}: expected {}", escape(*name),
                               names.empty() ? "a folder with prompts" : names));
}

/// The longest text, and what is left of a longer one. As sentence-transformers does, a folder that
/// states no length, and a model alone, have that of the tokenizer.
void set_limit(const VectorCommand& options, const evaluate::SentenceFolder& folder,
               OpenedVectors& out) {
  const evaluate::TokenizerLimit limit =
      evaluate::read_tokenizer_limit(options.open.tokenizer.value_or(folder.model));
  out.options.truncate = options.long_texts == LongTexts::kTruncate;
  out.options.keep_last = limit.keep_last;
  out.options.max_length =
      options.max_length.value_or(folder.max_length > 0 ? folder.max_length : limit.max_length);
  if (options.max_length) evaluate::token_limit(out.opened.model->design(), *options.max_length);
}

/// Of a folder that does not pool prompts: how many tokens this one has, without a special one at
/// its end, as sentence-transformers counts them.
void set_prompt(const std::string& prompt, const evaluate::SentenceFolder& folder,
                OpenedVectors& out) {
  out.prompt = prompt;
  if (prompt.empty() || folder.include_prompt) return;
  const text::Tokenizer& tokenizer = *out.opened.tokenizer;
  const evaluate::Sentence alone = encode_sentence(tokenizer, prompt, out.sentence);
  Index size = alone.size();
  if (size > 0 && tokenizer.is_special(alone.ids.back())) --size;
  out.options.unpooled = size;
}

}  // namespace

void add_vectors(cli::Command& command, VectorCommand& options) {
  commands::add_open_options(command, options.open);
  commands::add_batch_tokens(command, options.open);
  command.option("--pooling", "LIST", options.pooling,
                 "mean of the last hidden states; cls: that of the first token; first-last: mean "
                 "over the first and last layers; tta: mean without the template's tokens; max; "
                 "mean_sqrt_len_tokens; weightedmean; lasttoken; several, as mean,max: one after "
                 "the other [the folder's; else tta for a T-TA, mean for others]");
  command.flag(
      "--normalize", options.normalize,
      "scales vectors to length 1; the default if a sentence-transformers folder specifies it");
  command.flag("--whiten", options.whiten,
               "transforms the input's vectors to identity covariance; keeps them all in memory");
  command.option("--dim", "K", options.dim, cli::AllowedRange{1, 1e6},
                 "with --whiten: keeps the K directions of largest variance [all]");
  command.choice("--policy", options.long_texts, NameTable<LongTexts>(kLongTexts),
                 "for a text that is too long: stop with an error, read only the first tokens, or "
                 "skip its line and continue (exit code 3); skip also for other bad lines");
  commands::add_max_length(command, options.max_length, "read", "the folder's or model's");
  command.option("--prompt", "TEXT", options.prompt,
                 "put TEXT in front of each text; '' for nothing [the folder's default prompt]");
  command.option("--prompt-name", "NAME", options.prompt_name,
                 "put the folder's prompt of this name in front of each text");
  cli::add_no_special_in_text(command, options.no_special_in_text);
}

OpenedVectors open_vectors(const VectorCommand& options,
                           const std::optional<evaluate::Similarity>* similarity,
                           cli::Session& session) {
  const evaluate::SentenceFolder folder = evaluate::read_sentence_folder(options.open.model);
  const std::string prompt = choose_prompt(options, folder);
  OpenedVectors out{.opened = commands::open_model(options.open, folder.model, true, session)};
  const model::Design& design = out.opened.model->design();
  if (design.streams == model::Streams::kTowers)
    throw InputError(out.opened.path,
                     "the model has two towers, expected a model with one hidden state per token");
  // Of transformers' class, the last states are those after project_out.
  if (design.family == "opt" && design.positions_after_projection)
    throw InputError(out.opened.path,
                     fmt::format("its last states, {} wide, pass project_out in front of vectors, "
                                 "expected a model of family opt without it",
                                 design.hidden_size));
  for (const std::string& note : folder.notes) session.note(note);
  if (folder.lower_case) out.opened.tokenizer = text::lowercased(*out.opened.tokenizer);
  out.options.poolings = choose_poolings(options, folder, design);
  out.options.steps = folder.steps;
  set_limit(options, folder, out);
  out.options.batch_tokens = options.open.batch_tokens;
  out.options.mask_of = out.opened.mask_of;
  out.sentence.special_in_text = !options.no_special_in_text;
  set_prompt(prompt, folder, out);
  out.whiten = options.whiten;
  out.normalize = options.normalize || folder.normalize;
  // The folder's numbers are cut off after its normalisation.
  out.options.normalize = folder.normalize && !out.whiten;
  out.options.normalize_kept = options.normalize && !out.whiten;
  out.options.dim = folder.dim;
  out.size = evaluate::vector_size(out.options, design.hidden_size);
  if (options.dim && !options.whiten) throw UsageError("--dim needs --whiten");
  out.dim = options.dim.value_or(out.size);
  if (out.dim > out.size) {
    throw UsageError(fmt::format(
        "--dim {}, expected at most {} {}", out.dim,
        folder.dim > 0 ? "the folder's truncate_dim"
        : out.size < design.hidden_size || !folder.steps.empty() || out.options.poolings.size() > 1
            ? "the numbers of a vector,"
            : "the model's hidden size",
        out.size));
  }
  if (similarity != nullptr) {
    out.similarity = similarity->value_or(folder.similarity.value_or(out.similarity));
  }
  const bool cosines = out.similarity == evaluate::Similarity::kCosine;
  const std::string_view compared = name_in(evaluate::similarity_names(), out.similarity);
  const std::string_view policy = name_in(NameTable<LongTexts>(kLongTexts), options.long_texts);
  session.note(fmt::format("{}: {}; pooling {}{}{}{}{}{}, policy {}", out.opened.path,
                           out.opened.description(), names_of(out.options.poolings),
                           out.whiten ? ", whitened" : "", out.normalize ? ", normalised" : "",
                           folder.dim > 0 ? fmt::format(", first {} numbers", out.size) : "",
                           prompt.empty() ? "" : fmt::format(", prompt '{}'", escape(prompt)),
                           cosines ? "" : fmt::format(", similarity {}", compared), policy));
  std::vector<commands::Given> given = out.opened.given;
  if (options.max_length)
    given.push_back({"max_length", std::to_string(*options.max_length), false});
  if (options.whiten) given.push_back({"whiten", "true", false});
  if (options.dim) given.push_back({"dim", std::to_string(*options.dim), false});
  if (options.no_special_in_text) given.push_back({"no_special_in_text", "true", false});
  if (!prompt.empty()) given.push_back({"prompt", prompt});
  if (folder.dim > 0) given.push_back({"truncate_dim", std::to_string(out.size), false});
  if (!cosines) given.push_back({"similarity", std::string(compared)});
  JsonWriter json(out.provenance);
  json.member("model", out.opened.path);
  json.member("precision", kernel::precision_name(out.opened.model->precision()));
  json.member("policy", policy).member("pooling", names_of(out.options.poolings));
  json.member("normalize", out.normalize);
  commands::add_given(json, given);
  return out;
}

void WhitenedVectors::fit() {
  const Index size = opened_.size;
  whitening_ = evaluate::fit_whitening({numbers_.data(), count_, size}, opened_.dim);
}

std::vector<double> WhitenedVectors::get(Index i) const {
  const auto size = whitening_.mean.size();
  std::vector<double> out =
      whitening_.apply({numbers_.data() + static_cast<std::size_t>(i) * size, size});
  if (opened_.normalize) evaluate::normalize(out);
  return out;
}

}  // namespace masque::lm_score
