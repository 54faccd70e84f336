// lm-write fill: the likeliest tokens for the masks of each line.
#include "evaluate/write/fill.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json_writer.hpp"
#include "base/string/split.hpp"
#include "commands.hpp"
#include "commands/open_model.hpp"
#include "commands/result_format.hpp"
#include "commands/scoring.hpp"
#include "commands/sequences.hpp"
#include "commands/text_stream.hpp"
#include "evaluate/score/length_policy.hpp"
#include "masked_model.hpp"

namespace masque::lm_write {

namespace {

using evaluate::JointFill;

constexpr std::int64_t kTopK = 5;

struct Options {
  commands::OpenModelOptions open;
  commands::StreamOptions stream;
  evaluate::FillOptions fill;
  std::optional<std::int64_t> top_k;
  std::optional<std::string> targets;
  std::optional<std::int64_t> num_beams;
  std::optional<std::int64_t> sweeps;
  std::optional<double> temperature;
  std::optional<std::uint64_t> seed;
  commands::SequencePolicy policy = commands::SequencePolicy::kError;
};

/// The token that has this text, alone or as the only one of it. Throws UsageError.
TokenId target_of(const text::Tokenizer& tokenizer, std::string_view word) {
  if (const auto id = tokenizer.find(word)) return *id;
  const text::Encoding encoded = tokenizer.encode(word, {});
  const auto& ids = encoded.ids;
  if (ids.empty() || std::ranges::find(ids, tokenizer.roles().unk) != ids.end()) {
    throw UsageError(
        fmt::format("--targets: '{}' is not in the vocabulary, expected words that are one token",
                    escape(word)));
  }
  if (ids.size() == 1) return ids[0];
  throw UsageError(fmt::format("--targets: '{}' has {} tokens, expected words that are one token",
                               escape(word), ids.size()));
}

std::vector<TokenId> targets_of(const std::string& list, const text::Tokenizer& tokenizer) {
  if (list.empty()) throw UsageError("--targets: no word, expected words separated by commas");
  std::vector<TokenId> ids;
  for (const std::string_view word : split(list, ',')) {
    const TokenId id = target_of(tokenizer, word);
    if (std::ranges::find(ids, id) == ids.end()) ids.push_back(id);
  }
  return ids;
}

/// Throws UsageError for options of another way to fill.
void check(const Options& o) {
  const JointFill joint = o.fill.joint;
  if (o.num_beams && joint != JointFill::kBeam)
    throw UsageError("--num-beams: only with --joint beam");
  if ((o.sweeps || o.temperature || o.seed) && joint != JointFill::kGibbs)
    throw UsageError("--sweeps, --temperature and --seed: only with --joint gibbs");
  const std::int64_t top_k = o.top_k.value_or(kTopK);
  if (joint == JointFill::kBeam && o.num_beams && top_k > *o.num_beams) {
    throw UsageError(fmt::format("--top-k {}: expected at most {}, as many as --num-beams", top_k,
                                 *o.num_beams));
  }
  if (joint == JointFill::kLeftToRight && o.top_k.value_or(1) > 1) {
    throw UsageError(
        fmt::format("--top-k {}: expected 1, as --joint left-to-right has one filling", top_k));
  }
}

evaluate::FillOptions fill_options(const Options& o, const commands::OpenedModel& opened) {
  evaluate::FillOptions options = o.fill;
  options.top_k = o.top_k.value_or(kTopK);
  options.num_beams = o.num_beams.value_or(std::max<Index>(options.top_k, kTopK));
  options.sweeps = o.sweeps.value_or(100);
  options.temperature = o.temperature.value_or(1);
  options.seed = o.seed.value_or(0);
  options.batch_tokens = o.open.batch_tokens;
  options.mask_of = opened.mask_of;
  if (o.targets) options.targets = targets_of(*o.targets, *opened.tokenizer);
  return options;
}

/// What decided the fillings: members of a JSON object.
std::string fill_provenance(const Options& o, const evaluate::FillOptions& options,
                            const commands::OpenedModel& opened) {
  std::string out;
  JsonWriter json(out);
  json.member("model", opened.path);
  json.member("precision", kernel::precision_name(opened.model->precision()));
  commands::add_given(json, opened.given);
  if (o.policy == commands::SequencePolicy::kTruncate) json.member("policy", "truncate");
  if (o.targets) json.member("targets", *o.targets);
  if (options.joint == JointFill::kNone) return out;
  json.member("joint", name_in(evaluate::joint_fill_names(), options.joint));
  if (options.joint == JointFill::kBeam) json.member("num_beams", options.num_beams);
  if (options.joint == JointFill::kGibbs) {
    json.member("sweeps", options.sweeps).member("temperature", options.temperature);
    json.member("seed", options.seed);
  }
  return out;
}

/// Prints fillings: a row each, an object a line, or on a terminal a block a line with bars.
class FillingPrinter {
 public:
  FillingPrinter(const Options& options, const evaluate::FillOptions& fill,
                 const commands::OpenedModel& opened, cli::Session& session)
      : options_(options),
        joint_(fill.joint != JointFill::kNone),
        tokenizer_(*opened.tokenizer),
        number_(commands::ResultFormat::of(opened.model->precision(), options.open.digits)),
        provenance_(fill_provenance(options, fill, opened)),
        session_(session) {}

  void header() {
    if (!commands::has_header(options_.open.common, options_.stream) || draws()) return;
    std::vector<std::string> columns{"id", "mask", "rank", "token", "probability", "text"};
    if (joint_) columns = {"id", "rank", "tokens", "probability", "text"};
    session_.print(cli::header_line(session_, options_.open.common, columns));
  }

  void print(const evaluate::MaskedText& text, const evaluate::FilledText& filled) {
    if (options_.open.common.json) {
      session_.print(object_of(text, filled));
    } else if (draws()) {
      print_block(text, filled);
    } else {
      print_rows(text, filled);
    }
    if (session_.stdout_is_terminal()) session_.flush();
  }

 private:
  /// Whether bars are printed instead of rows.
  bool draws() const { return session_.stdout_is_terminal() && !options_.open.common.csv; }

  void print_row(const std::vector<cli::Cell>& cells) {
    session_.print(cli::row_line(session_, options_.open.common, cells));
  }

  /// The text with these tokens at the first masks, as the tokenizer decodes it.
  std::string text_of(const evaluate::MaskedText& text, std::span<const Index> places,
                      std::span<const TokenId> ids) const {
    const auto begin = text.sentence.ids.begin() + text.sentence.prefix;
    std::vector<TokenId> all(begin, begin + text.sentence.tokens());
    for (std::size_t i = 0; i < ids.size(); ++i)
      all[static_cast<std::size_t>(places[i] - text.sentence.prefix)] = ids[i];
    return tokenizer_.decode(all, false);
  }

  std::string text_with(const evaluate::MaskedText& text, std::size_t mask, TokenId id) const {
    return text_of(text, {&text.places[mask], 1}, {&id, 1});
  }

  std::string pieces_of(const std::vector<TokenId>& ids) const {
    std::string out;
    for (const TokenId id : ids)
      out += (out.empty() ? "" : " ") + std::string(tokenizer_.token(id));
    return out;
  }

  void print_rows(const evaluate::MaskedText& text, const evaluate::FilledText& filled) {
    for (std::size_t m = 0; m < filled.masks.size(); ++m) {
      for (std::size_t rank = 0; rank < filled.masks[m].size(); ++rank) {
        const evaluate::Filling& f = filled.masks[m][rank];
        print_row({text.id, static_cast<std::uint64_t>(m), static_cast<std::uint64_t>(rank),
                   tokenizer_.token(f.id), number_.cell(f.probability), text_with(text, m, f.id)});
      }
    }
    for (std::size_t rank = 0; rank < filled.joint.size(); ++rank) {
      const evaluate::JointFilling& f = filled.joint[rank];
      print_row({text.id, static_cast<std::uint64_t>(rank), pieces_of(f.ids),
                 number_.cell(std::exp(f.log_probability)), text_of(text, text.places, f.ids)});
    }
  }

  std::string object_of(const evaluate::MaskedText& text,
                        const evaluate::FilledText& filled) const {
    std::string out;
    JsonWriter json(out);
    json.begin_object().member("id", text.id).key(joint_ ? "fillings" : "masks").begin_array();
    for (std::size_t m = 0; m < filled.masks.size(); ++m) {
      json.begin_array();
      for (const evaluate::Filling& f : filled.masks[m]) {
        json.begin_object().member("token", tokenizer_.token(f.id)).member("token_id", f.id);
        json.raw_member("probability", number_.json(f.probability));
        json.member("text", text_with(text, m, f.id)).end_object();
      }
      json.end_array();
    }
    for (const evaluate::JointFilling& f : filled.joint) {
      json.begin_object().key("tokens").begin_array();
      for (const TokenId id : f.ids) json.value(tokenizer_.token(id));
      json.end_array().key("token_ids").array(f.ids);
      json.raw_member("log_probability", number_.json(f.log_probability));
      json.member("text", text_of(text, text.places, f.ids)).end_object();
    }
    json.end_array().raw(provenance_).end_object();
    return out + "\n";
  }

  void print_block(const evaluate::MaskedText& text, const evaluate::FilledText& filled) {
    session_.print(fmt::format("{}\n", escape(text_of(text, {}, {}))));
    for (std::size_t m = 0; m < filled.masks.size(); ++m) {
      if (filled.masks.size() > 1) session_.print(fmt::format("  mask {}\n", m));
      for (const evaluate::Filling& f : filled.masks[m])
        print_bar(f.probability, tokenizer_.token(f.id));
    }
    for (const evaluate::JointFilling& f : filled.joint)
      print_bar(std::exp(f.log_probability), pieces_of(f.ids));
  }

  void print_bar(double probability, std::string_view what) {
    constexpr int kWidth = 20;
    const auto length = static_cast<int>(std::lround(probability * kWidth));
    std::string bar;
    for (int i = 0; i < length; ++i) bar += session_.takes_utf8() ? "█" : "#";
    bar.append(static_cast<std::size_t>(kWidth - length), ' ');
    const std::string number =
        options_.open.digits ? number_.text(probability) : fmt::format("{:6.4f}", probability);
    session_.print(fmt::format("  {} {} {}\n", number, bar, escape(what)));
  }

  const Options& options_;
  bool joint_;
  const text::Tokenizer& tokenizer_;
  commands::ResultFormat number_;
  std::string provenance_;
  cli::Session& session_;
};

evaluate::MaskedText masked_text(const commands::OpenedModel& opened, TokenId mask,
                                 std::uint64_t id, std::string_view line) {
  evaluate::MaskedText text{
      .id = id, .sentence = evaluate::encode_sentence(*opened.tokenizer, line, {}), .places = {}};
  text.places = evaluate::places_of(text.sentence, mask);
  return text;
}

/// Why `text` cannot be filled; cuts it if it is too long and `policy` says so.
std::optional<std::string> problem_of(evaluate::MaskedText& text,
                                      const commands::OpenedModel& opened, TokenId mask,
                                      commands::SequencePolicy policy,
                                      evaluate::ShortenedTexts& shortened) {
  if (text.places.empty()) {
    return fmt::format("no {}, expected one (see {})", opened.tokenizer->token(mask),
                       field("policy"));
  }
  const Index limit = evaluate::token_limit(opened.model->design(), 0).value_or(0);
  evaluate::ShortenedTexts cut;
  if (auto problem = commands::fit(text.sentence, limit, policy, cut)) return problem;
  if (cut.texts > 0 && evaluate::places_of(text.sentence, mask) != text.places) {
    return fmt::format("a {} is beyond the {} tokens that are read (see {})",
                       opened.tokenizer->token(mask), limit, field("policy"));
  }
  shortened.add(static_cast<Index>(cut.tokens));
  return std::nullopt;
}

cli::ExitCode run(const Options& o, const cli::Command& command, cli::Session& session) {
  session.configure(o.open.common);
  check(o);
  cli::need_stream(command);
  const commands::OpenedModel opened = commands::open_model(o.open, o.open.model, true, session);
  need_masked_head(opened);
  const TokenId mask = need_mask_token(opened);
  const evaluate::FillOptions options = fill_options(o, opened);
  session.note(fmt::format("{}: {}", opened.path, opened.description()));
  FillingPrinter printer(o, options, opened, session);
  printer.header();
  std::vector<evaluate::MaskedText> waiting;
  evaluate::ShortenedTexts shortened;
  Index tokens = 0;
  commands::LineWork work;
  work.label = "filling";
  work.flush = [&] {
    const std::vector<evaluate::FilledText> filled = fill(*opened.model, waiting, options);
    for (std::size_t i = 0; i < filled.size(); ++i) printer.print(waiting[i], filled[i]);
    waiting.clear();
    tokens = 0;
  };
  work.use = [&](std::uint64_t id, std::string_view line) -> std::optional<std::string> {
    evaluate::MaskedText text = masked_text(opened, mask, id, line);
    if (auto problem = problem_of(text, opened, mask, o.policy, shortened)) return problem;
    if (tokens + text.sentence.size() > o.open.batch_tokens) work.flush();
    tokens += text.sentence.size();
    waiting.push_back(std::move(text));
    return std::nullopt;
  };
  commands::StreamOptions stream = o.stream;
  if (o.policy == commands::SequencePolicy::kSkip) stream.input.bad = cli::BadLines::kSkip;
  const cli::ExitCode code = commands::run_lines(stream, command, work, session);
  commands::note_shortened(shortened, session);
  return code;
}

}  // namespace

void declare_fill(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c =
      tool.subcommand("fill", "fills the masks of each line with the most probable tokens");
  c.example("echo 'Paris is the [MASK] of France.' | lm-write fill bert-base-uncased/",
            "the five most probable tokens, with their probabilities");
  c.example("lm-write fill roberta-base/ --targets ' good, bad' --json < reviews",
            "only two candidates; the mask token is the tokenizer's own, <mask>");
  c.example("lm-write fill bert-base-uncased/ --joint beam -k 3 < text",
            "fills several masks of a line together");
  commands::add_open_options(c, o->open);
  commands::add_batch_tokens(c, o->open);
  c.option("-k,--top-k", "N", o->top_k, cli::AllowedRange{1, 1e6},
           "fillings per mask, or per line with --joint [5; left-to-right: 1]");
  c.option("--targets", "LIST", o->targets, "consider only these tokens, separated by commas");
  c.choice("--joint", o->fill.joint, evaluate::joint_fill_names(),
           "how to fill several masks of a line: each alone, or together");
  c.option("--num-beams", "N", o->num_beams, cli::AllowedRange{1, 1e4},
           "partial fillings that --joint beam keeps [the larger of 5 and --top-k]");
  c.option("--sweeps", "N", o->sweeps, cli::AllowedRange{1, 1e9},
           "number of times --joint gibbs samples every mask [100]");
  c.option("--temperature", "X", o->temperature, cli::AllowedRange{1e-6, 1e6},
           "divide the logits of --joint gibbs by X [1]");
  cli::add_seed(c, o->seed, "seed of --joint gibbs");
  commands::add_digits(c, o->open.digits);
  commands::add_stream(c, o->stream, {.policy = false});
  commands::add_sequence_policy(c, o->policy);
  c.flag("--json", o->open.common.json, "print one JSON object per line instead of TSV");
  cli::add_csv(c, o->open.common);
  c.action([o, &c](cli::Session& session) { return run(*o, c, session); });
}

}  // namespace masque::lm_write
