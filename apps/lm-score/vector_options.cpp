#include "vector_options.hpp"

#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json.hpp"
#include "cli/shared_options.hpp"
#include "commands/scoring.hpp"
#include "probe/score/length_policy.hpp"

namespace masque::lm_score {

namespace {

using probe::SentencePooling;

constexpr std::array<std::pair<std::string_view, SentencePooling>, 4> kPoolingNames{
    {{"mean", SentencePooling::kMean},
     {"cls", SentencePooling::kCls},
     {"first-last", SentencePooling::kFirstLast},
     {"tta", SentencePooling::kTta}}};
constexpr NameTable<SentencePooling> kPoolings = kPoolingNames;
constexpr std::array<std::pair<std::string_view, LongTexts>, 3> kLongTexts{
    {{"error", LongTexts::kError}, {"truncate", LongTexts::kTruncate}, {"skip", LongTexts::kSkip}}};

/// What was requested, what the folder says, or what suits the model.
SentencePooling choose_pooling(const VectorCommand& options, const probe::SentenceFolder& folder,
                               const model::Design& design) {
  if (options.pooling) return *options.pooling;
  if (folder.pooling) return *folder.pooling;
  return design.streams == model::Streams::kFixedKeys ? SentencePooling::kTta
                                                      : SentencePooling::kMean;
}

}  // namespace

void add_vectors(cli::Command& command, VectorCommand& options, bool skip) {
  commands::add_open_options(command, options.open);
  commands::add_batch_tokens(command, options.open);
  command.choice("--pooling", options.pooling, kPoolings,
                 "mean of the last hidden states; that of the first token; mean over the first and "
                 "last layers; mean without the template's tokens [the folder's; else tta for a "
                 "T-TA, mean for others]");
  command.flag(
      "--normalize", options.normalize,
      "scales vectors to length 1; the default if a sentence-transformers folder specifies it");
  command.flag("--whiten", options.whiten,
               "transforms the input's vectors to identity covariance; keeps them all in memory");
  command.option("--dim", "K", options.dim, cli::AllowedRange{1, 1e6},
                 "with --whiten: keeps the K directions of largest variance [all]");
  command.choice("--policy", options.long_texts,
                 NameTable<LongTexts>(kLongTexts).first(skip ? 3 : 2),
                 skip ? "for a text that is too long: stop with an error, read only the first "
                        "tokens, or skip its line and continue (exit code 3)"
                      : "for a text that is too long: stop with an error, or read only the first "
                        "tokens");
  commands::add_max_length(command, options.max_length, "read", "the folder's or model's");
  cli::add_no_special_in_text(command, options.no_special_in_text);
}

OpenedVectors open_vectors(const VectorCommand& options, cli::Session& session) {
  const probe::SentenceFolder folder = probe::read_sentence_folder(options.open.model);
  OpenedVectors out{.opened = commands::open_model(options.open, folder.model, true, session)};
  const model::Design& design = out.opened.model->design();
  if (design.streams == model::Streams::kTowers)
    throw InputError(out.opened.path,
                     "the model has two towers, expected a model with one hidden state per token");
  for (const std::string& note : folder.notes) session.note(note);
  out.options.pooling = choose_pooling(options, folder, design);
  out.options.truncate = options.long_texts == LongTexts::kTruncate;
  out.options.max_length = options.max_length.value_or(folder.max_length);
  if (options.max_length) probe::token_limit(design, *options.max_length);
  out.options.batch_tokens = options.open.batch_tokens;
  out.options.mask_of = out.opened.mask_of;
  out.sentence.special_in_text = !options.no_special_in_text;
  out.whiten = options.whiten;
  out.normalize = options.normalize || folder.normalize;
  out.options.normalize = out.normalize && !out.whiten;
  if (options.dim && !options.whiten) throw UsageError("--dim needs --whiten");
  out.dim = options.dim.value_or(design.hidden_size);
  if (out.dim > design.hidden_size) {
    throw UsageError(fmt::format("--dim {}, expected at most the model's hidden size {}", out.dim,
                                 design.hidden_size));
  }
  const std::string_view policy = name_in(NameTable<LongTexts>(kLongTexts), options.long_texts);
  session.note(fmt::format("{}: {}; pooling {}{}{}, policy {}", out.opened.path,
                           out.opened.description(), name_in(kPoolings, out.options.pooling),
                           out.whiten ? ", whitened" : "", out.normalize ? ", normalised" : "",
                           policy));
  std::vector<commands::Given> given = out.opened.given;
  if (options.max_length)
    given.push_back({"max_length", std::to_string(*options.max_length), false});
  if (options.whiten) given.push_back({"whiten", "true", false});
  if (options.dim) given.push_back({"dim", std::to_string(*options.dim), false});
  if (options.no_special_in_text) given.push_back({"no_special_in_text", "true", false});
  JsonWriter json(out.provenance);
  json.member("model", out.opened.path);
  json.member("precision", kernel::precision_name(out.opened.model->precision()));
  json.member("policy", policy).member("pooling", name_in(kPoolings, out.options.pooling));
  json.member("normalize", out.normalize);
  commands::add_given(json, given);
  return out;
}

void WhitenedVectors::fit() {
  const Index size = opened_.opened.model->design().hidden_size;
  whitening_ = probe::fit_whitening({numbers_.data(), count_, size}, opened_.dim);
}

std::vector<double> WhitenedVectors::get(Index i) const {
  const auto size = whitening_.mean.size();
  std::vector<double> out =
      whitening_.apply({numbers_.data() + static_cast<std::size_t>(i) * size, size});
  if (opened_.normalize) probe::normalize(out);
  return out;
}

}  // namespace masque::lm_score
