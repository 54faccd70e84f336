#include "commands/sequences.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/input/line_filter.hpp"
#include "base/string/split.hpp"
#include "base/thread/parallel.hpp"
#include "commands/files.hpp"
#include "commands/scoring.hpp"
#include "evaluate/score/sentence.hpp"
#include "model/masks.hpp"
#include "records/record.hpp"
#include "records/record_reader.hpp"

namespace masque::commands {

namespace {

std::vector<Index> indexes(const records::Numbers& numbers) {
  return numbers.present ? std::vector<Index>(numbers.values.begin(), numbers.values.end())
                         : std::vector<Index>();
}

/// Throws InputError for a value of `values`, of the list `name`, below `low` or from `limit` on.
template <class Values>
void all_below(std::string_view name, const Values& values, Index low, Index limit) {
  for (const Index value : values) {
    if (value < low || value >= limit)
      throw InputError(fmt::format("{} {}, expected from {} to {}", name, value, low, limit - 1));
  }
}

/// Throws InputError for what the model cannot run.
void check(const evaluate::Sequence& item, const model::Design& design) {
  if (item.ids.empty()) throw InputError("no ids, expected at least one");
  all_below("token id", item.ids, 0, design.vocab_size);
  if (design.type_vocab_size > 0) all_below("seg", item.segments, 0, design.type_vocab_size);
  const Index longest = design.max_position_embeddings;
  const Index unlimited = std::numeric_limits<Index>::max();
  // Padding that positions do not count has −1.
  all_below("pos", item.positions, design.position_offset > 0 ? -1 : 0,
            longest > 0 ? longest : unlimited);
  if (longest > 0 && item.positions.empty() && std::ssize(item.ids) > longest)
    throw InputError(fmt::format("{} ids, expected at most {}, the positions of the model",
                                 item.ids.size(), longest));
}

/// Throws InputError for tokens that attention_mask hides between others, where a model counts them
/// in distances between tokens that its positions do not give, and for any, where it mixes them all
/// the same.
void check_hidden(const records::Record& record, const model::Design& design) {
  // transformers' FNet has no such argument.
  if (!record.hidden.empty() && design.family == "fnet")
    throw InputError(
        "attention_mask hides tokens, which FNet mixes with the others all the same; expected "
        "none");
  const model::BlockSparseDesign* blocks = model::sparse_blocks(design);
  if (blocks != nullptr && !record.hidden.empty() &&
      std::ssize(record.ids) + std::ssize(record.hidden) > blocks->full_length)
    throw InputError(fmt::format(
        "attention_mask hides tokens of a text that is read in blocks, which counts them; expected "
        "none, or at most {} tokens",
        blocks->full_length));
  if (record.hidden.empty() || record.pos.values.empty()) return;
  const std::int32_t first = *std::ranges::min_element(record.pos.values);
  const bool between = record.position_ids ||
                       std::ranges::any_of(record.hidden, [&](const records::DroppedToken& token) {
                         return token.pos > first;
                       });
  const bool windows = std::ranges::any_of(
      design.layers, [](const model::LayerDesign& layer) { return layer.window.has_value(); });
  const bool counts = windows || design.position == model::PositionType::kDisentangled ||
                      (design.position == model::PositionType::kT5 && design.position_offset > 0);
  if (between && counts)
    throw InputError(
        "attention_mask hides tokens between others, which counts in the distances of this model; "
        "expected padding in front or at the end");
}

/// Throws InputError for a source beyond the positions of the encoder of `model`.
void check_source_length(Index tokens, const model::Model& model) {
  const Index longest = model.encoder()->design().max_position_embeddings;
  if (longest > 0 && tokens > longest)
    throw InputError("source: " + evaluate::too_long(tokens, longest));
}

/// Throws InputError for a source that the model cannot read, and where it needs one.
void check_source(const records::Record& record, const model::Model& model) {
  const records::Numbers& source = record.source;
  if (model.encoder() == nullptr) {
    if (!source.present) return;
    throw InputError(
        "has source_ids, expected none: only the decoder of an encoder–decoder reads next to them");
  }
  if (source.values.empty())
    throw InputError("no source_ids, expected what the encoder reads next to ids of the decoder");
  all_below("source_ids:", source.values, 0, model.encoder()->design().vocab_size);
  check_source_length(std::ssize(source.values), model);
}

evaluate::Sequence item_of(records::Record& record, std::uint64_t number,
                           const model::Model& model) {
  const model::Design& design = model.design();
  check_source(record, model);
  check_hidden(record, design);
  records::number_positions(record, position_rule(design));
  evaluate::Sequence item{.number = number,
                          .ids = record.ids,
                          .segments = indexes(record.seg),
                          .positions = indexes(record.pos),
                          .labels = indexes(record.labels)};
  check(item, design);
  if (record.source.present) item.source = record.source.values;
  if (!record.mask) return item;
  const auto length = static_cast<Index>(record.ids.size());
  item.mask = records::bind_record_mask(*record.mask, length);
  return item;
}

cli::ExitCode each_record(const SequenceOptions& o, const OpenedModel& opened,
                          const cli::Command& command, const SequenceWork& sequences,
                          cli::Session& session) {
  records::JsonRecordReader reader;
  records::Record record;
  std::string padded;
  StreamOptions stream = o.stream;
  stream.file = *o.records;
  // JSON is UTF-8, and a carriage return is white space to it.
  stream.input.invalid = cli::Invalid::kError;
  stream.input.crlf = true;
  stream.input.format = cli::TextFormat::kText;
  RepairedLines surrogates;
  LineWork work;
  work.use = [&](std::uint64_t id, std::string_view line) -> std::optional<std::string> {
    if (line.empty()) return std::nullopt;
    padded.assign(line);
    padded.resize(line.size() + kLinePadding);
    record.clear();
    std::optional<evaluate::Sequence> item;
    auto problem = input_error_message([&] {
      const auto unread = reader.read(std::string_view(padded).substr(0, line.size()), record);
      surrogates.add_line(reader.lone_surrogates());
      if (unread) throw InputError(*unread);
      item = item_of(record, id, *opened.model);
      if (!item->mask && opened.mask_of) item->mask = opened.mask_of(item->ids);
    });
    if (problem) return problem;
    sequences.use(std::move(*item), {});
    return std::nullopt;
  };
  work.flush = sequences.flush;
  work.enough = sequences.enough;
  work.part = sequences.part;
  const cli::ExitCode code = run_lines(stream, command, work, session);
  cli::note_surrogates(surrogates, input_name(stream.file), session);
  return code;
}

cli::ExitCode each_text(const SequenceOptions& o, const OpenedModel& opened,
                        const cli::Command& command, const SequenceWork& sequences,
                        cli::Session& session) {
  const Index longest = opened.model->design().max_position_embeddings;
  const evaluate::SentenceOptions how = sentence_options(o, opened, session);
  evaluate::ShortenedTexts shortened;
  LineWork work;
  work.use = [&](std::uint64_t id, std::string_view line) -> std::optional<std::string> {
    evaluate::Sentence sentence;
    if (opened.model->encoder() != nullptr) {
      auto problem =
          input_error_message([&] { sentence = encode_decoder_line(line, opened, how); });
      if (problem) return problem;
    } else {
      sentence = evaluate::encode_sentence(*opened.tokenizer, line, how);
    }
    if (auto problem = fit(sentence, longest, o.policy, shortened)) return problem;
    if (sentence.size() == 0 && o.skip_empty) return std::nullopt;
    if (sentence.size() == 0) return "no tokens, expected at least one";
    sequences.use(sequence_of(std::move(sentence), id, opened), line);
    return std::nullopt;
  };
  work.flush = sequences.flush;
  work.enough = sequences.enough;
  work.part = sequences.part;
  const cli::ExitCode code = run_lines(o.stream, command, work, session);
  note_shortened(shortened, session);
  return code;
}

}  // namespace

std::pair<std::string_view, std::string_view> pair_columns(std::string_view line) {
  const auto columns = split_in_two(line, '\t');
  if (columns && columns->second.find('\t') == std::string_view::npos) return *columns;
  throw InputError(fmt::format("columns: {}, expected 2: two texts, separated by a tab",
                               split(line, '\t').size()));
}

evaluate::Sentence encode_target_line(std::string_view line, const OpenedModel& opened,
                                      const evaluate::SentenceOptions& options) {
  const auto [source, target] = pair_columns(line);
  const model::Design& design = opened.model->design();
  evaluate::Sentence sentence =
      evaluate::encode_target_sentence(*opened.tokenizer, source, target, options, *design.source);
  check_source_length(std::ssize(sentence.source), *opened.model);
  return sentence;
}

evaluate::Sentence encode_decoder_line(std::string_view line, const OpenedModel& opened,
                                       const evaluate::SentenceOptions& options) {
  const evaluate::Sentence sentence = encode_target_line(line, opened, options);
  return evaluate::part_of(sentence, 0, sentence.tokens() - 1);
}

std::optional<std::string> fit(evaluate::Sentence& sentence, Index limit, SequencePolicy policy,
                               evaluate::ShortenedTexts& shortened) {
  if (limit == 0 || sentence.size() <= limit) return std::nullopt;
  const Index kept = limit - sentence.prefix - sentence.suffix;
  if (policy != SequencePolicy::kTruncate || kept <= 0)
    return evaluate::too_long(sentence.size(), limit);
  shortened.add(sentence.tokens() - kept);
  sentence = evaluate::part_of(sentence, 0, kept);
  return std::nullopt;
}

records::PositionRule position_rule(const model::Design& design) {
  // OPT's offset is not part of position_ids.
  if (design.position_offset > 0 && !design.pad_token_id) return {.skips_hidden = true};
  records::PositionRule rule{.offset = static_cast<std::int32_t>(design.position_offset)};
  if (design.pad_token_id) rule.pad = static_cast<TokenId>(*design.pad_token_id);
  return rule;
}

evaluate::Sequence sequence_of(evaluate::Sentence sentence, std::uint64_t number,
                               const OpenedModel& opened) {
  evaluate::Sequence sequence{.number = number,
                              .ids = std::move(sentence.ids),
                              .segments = std::move(sentence.segments),
                              .positions = {},
                              .source = std::move(sentence.source),
                              .source_spans = std::move(sentence.source_spans),
                              .mask = {},
                              .pieces = std::move(sentence.pieces),
                              .spans = std::move(sentence.spans),
                              .prefix = sentence.prefix,
                              .suffix = sentence.suffix};
  if (opened.mask_of) sequence.mask = opened.mask_of(sequence.ids);
  return sequence;
}

evaluate::SentenceOptions sentence_options(const SequenceOptions& options,
                                           const OpenedModel& opened, cli::Session& session) {
  const model::Design& design = opened.model->design();
  evaluate::SentenceOptions how{.special = !options.no_special};
  // Without special tokens means without this one, too.
  if (options.no_special && !options.begin.given()) return how;
  if (opened.model->encoder() != nullptr) refuse_begin(options.begin);
  how.begin = begin_token_of(options.begin, begins_texts(design), opened,
                             fmt::format("a {}", design.family), session, how.special);
  return how;
}

std::vector<Given> given_sequences(const SequenceOptions& options) {
  std::vector<Given> given = given_begin(options.begin);
  if (options.no_special) given.push_back({"no_special", "true", false});
  if (options.policy == SequencePolicy::kTruncate) given.push_back({"policy", "truncate"});
  if (options.policy == SequencePolicy::kSkip || options.stream.input.bad == cli::BadLines::kSkip)
    given.push_back({"policy", "skip"});
  const std::vector<Given> input = given_input(options.stream.input);
  given.insert(given.end(), input.begin(), input.end());
  return given;
}

void add_sequences(cli::Command& command, SequenceOptions& options, bool masks) {
  command.option("--records", "FILE", options.records,
                 fmt::format("read JSON lines with ids, and optionally {}, instead of text, and of "
                             "pairs with source_ids; - reads standard input",
                             masks ? "seg, pos and mask" : "seg and pos"));
  command.flag("--no-special", options.no_special,
               "do not add the special tokens of the tokenizer's template");
  add_begin(command, options.begin);
  add_stream(command, options.stream, {.policy = false});
  add_sequence_policy(command, options.policy);
}

void add_sequence_policy(cli::Command& command, SequencePolicy& policy) {
  command.choice("--policy", policy,
                 {{"error", SequencePolicy::kError},
                  {"skip", SequencePolicy::kSkip},
                  {"truncate", SequencePolicy::kTruncate}},
                 "a line that cannot be processed: stop, or skip it and continue (exit code 3); "
                 "truncate: a text with too many tokens loses its last ones");
}

void check_sequences(const SequenceOptions& o, const cli::Command& command) {
  if (o.records.value_or("-") == "-") cli::need_stream(command);
  if (!o.records) return;
  if (o.policy == SequencePolicy::kTruncate) {
    throw UsageError(fmt::format("{} truncate applies to text and cannot be combined with {}",
                                 field("policy"), field("records")));
  }
  if (o.no_special || o.begin.given() || o.stream.input.crlf ||
      o.stream.input.invalid != cli::Invalid::kReplace || o.stream.input.field ||
      o.stream.input.format != cli::TextFormat::kAuto) {
    throw UsageError(
        "--no-special, --bos, --no-bos, --invalid, --crlf, --format and --field apply to text and "
        "cannot be combined with --records");
  }
}

cli::ExitCode each_sequence(const SequenceOptions& options, const OpenedModel& opened,
                            const cli::Command& command, const SequenceWork& work,
                            cli::Session& session) {
  SequenceOptions settled = options;
  if (options.policy == SequencePolicy::kSkip) settled.stream.input.bad = cli::BadLines::kSkip;
  const auto each = options.records ? each_record : each_text;
  return each(settled, opened, command, work, session);
}

std::vector<evaluate::Sequence> read_sequences(const SequenceOptions& options,
                                               const OpenedModel& opened,
                                               const cli::Command& command, cli::ExitCode& code,
                                               cli::Session& session) {
  std::vector<evaluate::Sequence> items;
  SequenceWork work;
  work.use = [&](evaluate::Sequence&& sequence, std::string_view) {
    items.push_back(std::move(sequence));
  };
  code = each_sequence(options, opened, command, work, session);
  return items;
}

}  // namespace masque::commands
