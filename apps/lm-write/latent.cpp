// lm-write latent: texts and the points of a model with latent bottlenecks.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/json/json.hpp"
#include "base/json/json_writer.hpp"
#include "base/string/edit_distance.hpp"
#include "base/string/parse_number.hpp"
#include "base/string/split.hpp"
#include "base/string/utf8.hpp"
#include "base/thread/interrupt.hpp"
#include "base/thread/parallel.hpp"
#include "commands.hpp"
#include "commands/open_model.hpp"
#include "commands/result_format.hpp"
#include "commands/text_stream.hpp"
#include "commands/vector_file.hpp"
#include "evaluate/write/generate.hpp"
#include "evaluate/write/latent_texts.hpp"
#include "generate_options.hpp"
#include "kernel/product/strip_weights.hpp"
#include "store/checkpoint.hpp"
#include "tensor/convert.hpp"
#include "text/tokenizer.hpp"

namespace masque::lm_write {

namespace {

// What the commands of lm-write latent share: points of lines, and texts of points.

using Words = std::set<std::string, std::less<>>;

/// Points of the lines of a stream, in order. `take` gets the number of a line's first text: of a
/// line of `texts` texts between tabs all of them. Of `texts` 1 the line is the text.
class LatentLines {
 public:
  using Take = std::function<void(std::uint64_t id, std::vector<evaluate::LatentPoints>&& points)>;

  LatentLines(const commands::OpenedModel& opened, std::int64_t batch_tokens, std::size_t texts,
              Take take);
  /// Returns why the line has no points, or nothing.
  std::optional<std::string> add(std::uint64_t id, std::string_view line);
  void flush() { encoder_.flush(); }

 private:
  const commands::OpenedModel& opened_;
  std::size_t texts_;
  Take take_;
  std::vector<evaluate::LatentPoints> waiting_;
  evaluate::LatentEncoder encoder_;
};

/// Writes texts from points, some at a time, in order.
class LatentWriter {
 public:
  /// A text that was written, what stands next to it, and its points.
  struct Written {
    std::uint64_t id = 0;
    std::int64_t number = 0;  ///< what the caller counts: a step, a bottleneck
    std::int64_t sample = 0;
    double score = 0;
    double log_probability = 0;
    bool ended = false;
    std::vector<TokenId> ids;
    std::string text;
    const evaluate::LatentPoints* points = nullptr;  ///< until the call ends
  };
  using Take = std::function<void(const Written&)>;

  /// `options`: those of declare_text_options, with kind unilm.
  LatentWriter(const GenerateOptions& options, const commands::OpenedModel& opened, Take take);
  void add(std::uint64_t id, std::int64_t number, evaluate::LatentPoints points);
  void flush();

 private:
  const GenerateOptions& options_;
  const commands::OpenedModel& opened_;
  Take take_;
  evaluate::GenerateOptions generate_;
  TokenId begin_ = 0;
  std::vector<evaluate::Prompt> prompts_;
  std::vector<std::pair<std::uint64_t, std::int64_t>> numbers_;
};

/// The points of a file, a row a text: .npy, or the tensor latents of a .safetensors.
class PointFile {
 public:
  /// Opens the file and checks all of it, so that nothing is written for a wrong one. Throws
  /// InputError for other shapes than (texts, layers · size), and for a point without a direction.
  PointFile(const std::string& path, const model::LatentDesign& latent);
  /// Calls `take` with the points of each row, brought to length 1.
  void read(const std::function<void(evaluate::LatentPoints&& points)>& take) const;

 private:
  std::string path_;
  const model::LatentDesign& latent_;
  store::Checkpoint file_;
  store::TensorInfo tensor_;
};

/// Brings each point to length 1. Throws InputError for one that has none.
void normalize_points(const model::LatentDesign& latent, evaluate::LatentPoints& points) {
  for (std::size_t first = 0; first < points.size();
       first += static_cast<std::size_t>(latent.size)) {
    const std::span<double> point =
        std::span(points).subspan(first, static_cast<std::size_t>(latent.size));
    double largest = 0;
    for (const double x : point) {
      if (!std::isfinite(x)) throw InputError("a number is not finite, expected finite numbers");
      largest = std::max(largest, std::abs(x));
    }
    if (largest == 0) throw InputError("a point is all zeros, expected a direction");
    double squares = 0;
    for (double& x : point) {
      x /= largest;
      squares += x * x;
    }
    for (double& x : point) x /= std::sqrt(squares);
  }
}

void check_count(std::size_t found, const model::LatentDesign& latent) {
  if (found != static_cast<std::size_t>(latent.layers * latent.size)) {
    throw InputError(fmt::format("{} numbers, expected {}: {} points of {} numbers", found,
                                 latent.layers * latent.size, latent.layers, latent.size));
  }
}

/// A list of numbers, or one of lists, one a point.
void add_numbers(const JsonValue& list, const model::LatentDesign& latent,
                 std::vector<double>& out) {
  const auto add = [&](const JsonValue& value) {
    const auto number = value.number();
    if (!number) throw InputError("latents: expected numbers, or a list of numbers for each point");
    out.push_back(*number);
  };
  for (const JsonValue& item : list.items) {
    if (!item.is(JsonKind::kArray)) {
      add(item);
      continue;
    }
    if (std::ssize(item.items) != latent.size)
      throw InputError(fmt::format("latents: a point of {} numbers, expected {}", item.items.size(),
                                   latent.size));
    for (const JsonValue& number : item.items) add(number);
  }
}

/// A model with latent bottlenecks and its tokenizer. Throws InputError for another model.
commands::OpenedModel open_latent_model(const commands::OpenModelOptions& options,
                                        cli::Session& session) {
  if (options.mask)
    throw UsageError("--mask cannot be used: points are computed with the model's own masks");
  commands::OpenedModel opened = commands::open_model(options, options.model, true, session);
  if (const auto problem =
          input_error_message([&] { evaluate::check_latents(opened.model->design()); }))
    throw InputError(opened.path, *problem);
  const model::LatentDesign& latent = *opened.model->design().variants.latent;
  session.note(fmt::format("{}: {}; latent bottlenecks: {}, of {} numbers", opened.path,
                           opened.description(), latent.layers, latent.size));
  return opened;
}

/// The words of the file `path`, between blanks. Throws InputError if it has none, and for other
/// texts than UTF-8.
Words read_words(const std::string& path) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 26;
  const std::string text = read_text(path, kMostBytes);
  if (!valid_utf8(text)) throw InputError(path, "not UTF-8, expected words");
  Words words;
  for (const std::string_view word : split_at_blanks(text, " \t\r\n")) words.emplace(word);
  if (words.empty()) throw InputError(path, "no word, expected words separated by blanks or lines");
  return words;
}

LatentLines::LatentLines(const commands::OpenedModel& opened, std::int64_t batch_tokens,
                         std::size_t texts, Take take)
    : opened_(opened),
      texts_(texts),
      take_(std::move(take)),
      encoder_(*opened.model, batch_tokens,
               [this](std::uint64_t id, evaluate::LatentPoints&& points) {
                 waiting_.push_back(std::move(points));
                 if (waiting_.size() < texts_) return;
                 take_(id, std::move(waiting_));
                 waiting_.clear();
               }) {}

std::optional<std::string> LatentLines::add(std::uint64_t id, std::string_view line) {
  const std::vector<std::string_view> parts =
      texts_ == 1 ? std::vector<std::string_view>{line} : split(line, '\t');
  if (parts.size() != texts_)
    return fmt::format("{} texts separated by tabs, expected {}", parts.size(), texts_);
  std::vector<evaluate::Sentence> sentences;
  for (const std::string_view part : parts) {
    sentences.push_back(evaluate::encode_sentence(*opened_.tokenizer, part, {}));
    if (auto problem = encoder_.length_problem(sentences.back())) return problem;
  }
  for (const evaluate::Sentence& sentence : sentences) encoder_.add(id, sentence);
  return std::nullopt;
}

LatentWriter::LatentWriter(const GenerateOptions& options, const commands::OpenedModel& opened,
                           Take take)
    : options_(options), opened_(opened), take_(std::move(take)) {
  generate_ = generate_options(options, opened);
  const std::vector<TokenId> before = text::template_tokens(*opened.tokenizer, 1).before;
  if (before.empty())
    throw InputError(opened.path, "the tokenizer adds no token in front of a text, expected one");
  begin_ = before.front();
}

void LatentWriter::add(std::uint64_t id, std::int64_t number, evaluate::LatentPoints points) {
  evaluate::Prompt prompt;
  prompt.id = id;
  prompt.ids = {begin_, begin_};
  prompt.source = 1;
  prompt.latents = std::move(points);
  prompts_.push_back(std::move(prompt));
  numbers_.emplace_back(id, number);
  const std::int64_t each =
      options_.new_tokens() * std::max<std::int64_t>(options_.texts(), generate_.beams.num_beams);
  if (std::ssize(prompts_) * each >= options_.open.batch_tokens) flush();
}

void LatentWriter::flush() {
  if (prompts_.empty()) return;
  const std::vector<evaluate::Generated> texts =
      evaluate::generate(*opened_.model, prompts_, generate_);
  const std::size_t each = texts.size() / prompts_.size();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const evaluate::Generated& text = texts[i];
    take_({.id = numbers_[i / each].first,
           .number = numbers_[i / each].second,
           .sample = text.sample,
           .score = text.score,
           .log_probability = text.log_probability,
           .ended = text.ended,
           .ids = text.ids,
           .text = opened_.tokenizer->decode(text.ids, true),
           .points = &prompts_[i / each].latents});
  }
  prompts_.clear();
  numbers_.clear();
}

PointFile::PointFile(const std::string& path, const model::LatentDesign& latent)
    : path_(path), latent_(latent), file_(store::open_checkpoint(path)) {
  const std::vector<store::TensorInfo>& tensors = file_.tensors();
  const store::TensorInfo* tensor = file_.find("latents");
  if (tensor == nullptr && tensors.size() == 1) tensor = &tensors.front();
  if (tensor == nullptr) throw InputError(path, "no tensor 'latents', expected one");
  const auto width = static_cast<std::uint64_t>(latent.layers * latent.size);
  if ((tensor->dtype != DType::kF64 && tensor->dtype != DType::kF32) || tensor->shape.size() != 2 ||
      tensor->shape[1] != width) {
    throw InputError(path, fmt::format("'{}': {} of type {}, expected (texts, {}) of F32 or F64",
                                       escape(tensor->name), shape_text(tensor->shape),
                                       dtype_name(tensor->dtype), width));
  }
  tensor_ = *tensor;
  read([](evaluate::LatentPoints&&) {});
}

void PointFile::read(const std::function<void(evaluate::LatentPoints&& points)>& take) const {
  const auto width = static_cast<std::size_t>(tensor_.shape[1]);
  std::vector<std::byte> row(width * dtype_bits(tensor_.dtype) / 8);
  for (std::uint64_t i = 0; i < tensor_.shape[0]; ++i) {
    throw_if_interrupted();
    file_.read(tensor_, i * row.size(), row);
    evaluate::LatentPoints points(width);
    to_double(tensor_.dtype, row, points);
    if (const auto problem = input_error_message([&] { normalize_points(latent_, points); }))
      throw InputError(path_, fmt::format("row {}: {}", i + 1, *problem));
    take(std::move(points));
  }
}

/// Points of a line as latent encode writes it: numbers between tabs, or a JSON object. Throws
/// InputError.
evaluate::LatentPoints parse_points(std::string_view line, const model::LatentDesign& latent) {
  evaluate::LatentPoints points;
  if (trim(line).starts_with('{')) {
    const JsonValue value = parse_json_file(line, "JSON");
    const JsonValue* list = value.find("latents");
    if (list == nullptr || !list->is(JsonKind::kArray))
      throw InputError("no field 'latents', expected a list");
    add_numbers(*list, latent, points);
  } else {
    for (const std::string_view part : split(line, '\t')) {
      const auto number = parse_number<double>(part);
      if (!number) throw InputError(fmt::format("'{}', expected a number", escape(part)));
      points.push_back(*number);
    }
  }
  check_count(points.size(), latent);
  normalize_points(latent, points);
  return points;
}

// The command.

struct Options {
  GenerateOptions generate;
  std::optional<std::string> output;          // encode
  std::optional<std::string> latents;         // decode
  std::int64_t count = 1;                     // sample
  std::int64_t steps = 5;                     // interpolate
  std::optional<std::int64_t> block;          // swap
  std::optional<std::string> function_words;  // swap
};

const model::LatentDesign& latent_of(const commands::OpenedModel& opened) {
  return *opened.model->design().variants.latent;
}

void add_points(JsonWriter& json, const commands::ResultFormat& number,
                const model::LatentDesign& latent, const evaluate::LatentPoints& points) {
  json.key("latents").begin_array();
  for (std::size_t k = 0; k < points.size(); ++k) {
    const std::size_t at = k % static_cast<std::size_t>(latent.size);
    if (at == 0) json.begin_array();
    json.raw(number.json(points[k]));
    if (at + 1 == static_cast<std::size_t>(latent.size)) json.end_array();
  }
  json.end_array();
}

cli::ExitCode encode(const Options& o, const cli::Command& command, cli::Session& session) {
  const GenerateOptions& g = o.generate;
  session.configure(g.open.common);
  if (o.output) {
    if (g.open.common.json) throw UsageError("--json cannot be combined with -o");
    if (g.open.common.csv) throw UsageError("--csv cannot be combined with -o");
    if (g.open.digits) throw UsageError("--digits cannot be combined with -o");
    commands::VectorFile::check_name(*o.output);
  }
  cli::need_stream(command);
  const commands::OpenedModel opened = open_latent_model(g.open, session);
  const model::LatentDesign& latent = latent_of(opened);
  const auto number = commands::ResultFormat::of(opened.model->precision(), g.open.digits);
  std::optional<commands::VectorFile> file;
  const Index width = latent.layers * latent.size;
  if (o.output) file.emplace(*o.output, "latents", width, opened.model->precision());
  const cli::CommonOptions& common = g.open.common;
  commands::print_vector_header(width, commands::has_header(common, g.stream), common, session);
  LatentLines lines(opened, g.open.batch_tokens, 1,
                    [&](std::uint64_t id, std::vector<evaluate::LatentPoints>&& all) {
                      if (file) return file->add(all.front());
                      if (!common.json)
                        return session.print(commands::vector_line(all.front(), number, common));
                      std::string out;
                      JsonWriter json(out);
                      json.begin_object().member("id", id);
                      add_points(json, number, latent, all.front());
                      json.end_object();
                      session.print(out + "\n");
                    });
  commands::LineWork work;
  work.label = "encoding";
  work.use = [&](std::uint64_t id, std::string_view line) { return lines.add(id, line); };
  work.flush = [&] { lines.flush(); };
  const cli::ExitCode code = commands::run_lines(g.stream, command, work, session);
  if (file) file->finish();
  return code;
}

/// Prints texts that were written from points.
class TextPrinter {
 public:
  /// `number`: the name of Written::number; nullptr if it says nothing.
  TextPrinter(const GenerateOptions& options, const commands::OpenedModel& opened,
              const char* number, cli::Session& session)
      : options_(options),
        latent_(latent_of(opened)),
        digits_(commands::ResultFormat::of(opened.model->precision(), options.open.digits)),
        number_(number),
        session_(session) {}

  void header(const std::vector<std::string>& more = {}) {
    if (!commands::has_header(options_.open.common, options_.stream)) return;
    std::vector<std::string> columns{"id"};
    if (number_ != nullptr) columns.emplace_back(number_);
    columns.insert(columns.end(), {"sample", "score"});
    columns.insert(columns.end(), more.begin(), more.end());
    columns.emplace_back("text");
    session_.print(cli::header_line(session_, options_.open.common, columns));
  }

  void print(const LatentWriter::Written& text,
             const std::vector<std::pair<std::string, std::optional<int>>>& more = {}) {
    std::string out;
    if (options_.open.common.json) {
      JsonWriter json(out);
      json.begin_object().member("id", text.id);
      if (number_ != nullptr) json.member(number_, text.number);
      json.member("sample", text.sample).raw_member("score", digits_.json(text.score));
      if (options_.beams()) json.raw_member("log_probability", digits_.json(text.log_probability));
      json.member("ended", text.ended);
      for (const auto& [name, value] : more) {
        if (value) json.member(name, *value);
      }
      add_points(json, digits_, latent_, *text.points);
      json.key("ids").array(text.ids).member("text", text.text).end_object();
      session_.print(out + "\n");
    } else {
      std::vector<cli::Cell> cells{text.id};
      if (number_ != nullptr) cells.emplace_back(text.number);
      cells.emplace_back(text.sample);
      cells.push_back(digits_.cell(text.score));
      for (const auto& [name, value] : more)
        cells.push_back(value ? cli::Cell(*value) : cli::Cell::none());
      cells.emplace_back(text.text);
      session_.print(cli::row_line(session_, options_.open.common, cells));
    }
    if (session_.stdout_is_terminal()) session_.flush();
  }

 private:
  const GenerateOptions& options_;
  const model::LatentDesign& latent_;
  commands::ResultFormat digits_;
  const char* number_;
  cli::Session& session_;
};

/// `draws_points`: the seed counts without --do-sample, too.
GenerateOptions prepare(const Options& o, cli::Session& session, bool draws_points = false) {
  session.configure(o.generate.open.common);
  GenerateOptions settings = settled(o.generate, session);
  GenerateOptions checked = settings;
  if (draws_points) checked.seed.reset();
  check_text_options(checked);
  // A row a text and token: weights come from memory for each of them.
  kernel::choose_product(kernel::ProductChoice::kFewRows);
  return settings;
}

cli::ExitCode decode(const Options& o, const cli::Command& command, cli::Session& session) {
  const GenerateOptions g = prepare(o, session);
  if (!o.latents) cli::need_stream(command);
  for (const char* option : {"shard", "first-record", "invalid", "crlf", "max-line", "policy"}) {
    if (o.latents && command.is_requested(option))
      throw UsageError(fmt::format("--{} cannot be combined with --latents", option));
  }
  const commands::OpenedModel opened = open_latent_model(g.open, session);
  TextPrinter printer(g, opened, nullptr, session);
  LatentWriter writer(g, opened, [&](const auto& text) { printer.print(text); });
  if (o.latents) {
    const PointFile file(*o.latents, latent_of(opened));
    printer.header();
    std::uint64_t id = 0;
    file.read([&](evaluate::LatentPoints&& points) { writer.add(id++, 0, std::move(points)); });
    writer.flush();
    return cli::ExitCode::kDone;
  }
  printer.header();
  commands::LineWork work;
  work.label = "decoding";
  work.use = [&](std::uint64_t id, std::string_view line) {
    evaluate::LatentPoints points;
    auto problem = input_error_message([&] { points = parse_points(line, latent_of(opened)); });
    if (!problem) writer.add(id, 0, std::move(points));
    return problem;
  };
  work.flush = [&] { writer.flush(); };
  commands::StreamOptions stream = g.stream;
  stream.input.format = cli::TextFormat::kText;  // numbers, or JSON
  return commands::run_lines(stream, command, work, session);
}

cli::ExitCode sample(const Options& o, const cli::Command& /*command*/, cli::Session& session) {
  const GenerateOptions g = prepare(o, session, true);
  const commands::OpenedModel opened = open_latent_model(g.open, session);
  TextPrinter printer(g, opened, nullptr, session);
  LatentWriter writer(g, opened, [&](const auto& text) { printer.print(text); });
  printer.header();
  for (std::int64_t i = 0; i < o.count; ++i) {
    throw_if_interrupted();
    const auto id = static_cast<std::uint64_t>(i);
    writer.add(id, 0, evaluate::random_points(latent_of(opened), g.seed.value_or(0), id));
  }
  writer.flush();
  return cli::ExitCode::kDone;
}

/// Runs over pairs of texts; `use` writes what it makes of the points of both.
cli::ExitCode run_pairs(const GenerateOptions& g, const cli::Command& command,
                        const commands::OpenedModel& opened, LatentWriter& writer,
                        const std::function<void(std::uint64_t, const evaluate::LatentPoints&,
                                                 const evaluate::LatentPoints&)>& use,
                        cli::Session& session) {
  LatentLines lines(opened, g.open.batch_tokens, 2,
                    [&](std::uint64_t id, std::vector<evaluate::LatentPoints>&& both) {
                      use(id, both[0], both[1]);
                    });
  commands::LineWork work;
  work.label = "writing";
  work.use = [&](std::uint64_t id, std::string_view line) { return lines.add(id, line); };
  work.flush = [&] {
    lines.flush();
    writer.flush();
  };
  return commands::run_lines(g.stream, command, work, session);
}

cli::ExitCode interpolate(const Options& o, const cli::Command& command, cli::Session& session) {
  const GenerateOptions g = prepare(o, session);
  cli::need_stream(command);
  const commands::OpenedModel opened = open_latent_model(g.open, session);
  TextPrinter printer(g, opened, "step", session);
  LatentWriter writer(g, opened, [&](const auto& text) { printer.print(text); });
  printer.header();
  return run_pairs(
      g, command, opened, writer,
      [&](std::uint64_t id, const evaluate::LatentPoints& a, const evaluate::LatentPoints& b) {
        for (std::int64_t step = 0; step < o.steps; ++step) {
          const double share = static_cast<double>(step) / static_cast<double>(o.steps - 1);
          writer.add(id, step, evaluate::points_between(latent_of(opened), a, b, share));
        }
      },
      session);
}

/// Words of a text between blanks, as numbers for edit_distance.
class WordNumbers {
 public:
  std::u32string of(std::string_view text, const std::function<bool(const std::string&)>& keeps) {
    std::u32string out;
    for (const std::string_view word : split_at_blanks(text, kBlanksOfLine)) {
      const std::string own(word);
      if (!keeps(own)) continue;
      const auto [found, fresh] = numbers_.try_emplace(own, numbers_.size());
      out.push_back(static_cast<char32_t>(found->second));
    }
    return out;
  }

 private:
  std::map<std::string, std::size_t> numbers_;
};

/// How many words a text differs by from another: all, those of a list, and the others.
struct WordEdits {
  int all = 0;
  std::optional<int> function, content;
};
WordEdits edits_between(const std::string& a, const std::string& b,
                        const std::optional<Words>& function_words) {
  WordNumbers numbers;
  const auto distance = [&](const std::function<bool(const std::string&)>& keeps) {
    return edit_distance(numbers.of(a, keeps), numbers.of(b, keeps), Exchanges::kTwoEdits);
  };
  WordEdits edits;
  edits.all = distance([](const std::string&) { return true; });
  if (!function_words) return edits;
  edits.function = distance([&](const std::string& w) { return function_words->contains(w); });
  edits.content = distance([&](const std::string& w) { return !function_words->contains(w); });
  return edits;
}

cli::ExitCode swap(const Options& o, const cli::Command& command, cli::Session& session) {
  const GenerateOptions g = prepare(o, session);
  cli::need_stream(command);
  const commands::OpenedModel opened = open_latent_model(g.open, session);
  const model::LatentDesign& latent = latent_of(opened);
  if (o.block && *o.block > latent.layers)
    throw UsageError(fmt::format("--bottleneck {}, expected 1 to {}", *o.block, latent.layers));
  std::optional<Words> function_words;
  if (o.function_words) function_words = read_words(*o.function_words);
  TextPrinter printer(g, opened, "bottleneck", session);
  // The text with no point from the other comes first.
  std::map<std::int64_t, std::string> originals;
  LatentWriter writer(g, opened, [&](const LatentWriter::Written& text) {
    if (text.number == 0) originals[text.sample] = text.text;
    const WordEdits edits = edits_between(originals[text.sample], text.text, function_words);
    printer.print(text, {{"edits", edits.all},
                         {"function_edits", edits.function},
                         {"content_edits", edits.content}});
  });
  printer.header({"edits", "function_edits", "content_edits"});
  return run_pairs(
      g, command, opened, writer,
      [&](std::uint64_t id, const evaluate::LatentPoints& a, const evaluate::LatentPoints& b) {
        writer.add(id, 0, a);
        for (Index m = 1; m <= latent.layers; ++m) {
          if (!o.block || *o.block == m)
            writer.add(id, m, evaluate::with_point_of(latent, a, b, m - 1));
        }
      },
      session);
}

/// The options of all commands; `text`: of those that read lines, whether these are text, else they
/// are points; `writes`: of those that write texts.
void declare_common(cli::Command& c, Options& o, std::optional<bool> text, bool writes) {
  o.generate.kind = Continuation::kUnilm;
  commands::add_open_options(c, o.generate.open);
  commands::add_batch_tokens(c, o.generate.open);
  if (writes) declare_text_options(c, o.generate);
  commands::add_digits(c, o.generate.open.digits);
  if (text) commands::add_stream(c, o.generate.stream, {.text = *text});
  c.flag("--json", o.generate.open.common.json, "print one JSON object per text instead of TSV");
  writes ? cli::add_csv(c, o.generate.open.common)
         : commands::add_vector_csv(c, o.generate.open.common);
}

void set_action(cli::Command& c, const std::shared_ptr<Options>& o, auto run) {
  c.action([o, &c, run](cli::Session& session) { return run(*o, c, session); });
}

}  // namespace

void declare_latent(cli::Command& tool) {
  cli::Command& parent = tool.subcommand(
      "latent", "encodes texts as points and writes texts from points, with a model of univae");
  {
    auto o = std::make_shared<Options>();
    cli::Command& c = parent.subcommand("encode", "prints the points of each input line");
    c.example("lm-write latent encode univae/ -o points.npy < text",
              "one row per line: the numbers of all bottlenecks, one after the other");
    c.option("-o,--output", "FILE", o->output,
             "write a matrix to FILE: .npy, or .safetensors with the tensor latents");
    c.writes({"output"});
    declare_common(c, *o, true, false);
    set_action(c, o, encode);
  }
  {
    auto o = std::make_shared<Options>();
    cli::Command& c = parent.subcommand("decode", "writes a text for each row of points");
    c.example("lm-write latent encode univae/ --json < text | lm-write latent decode univae/",
              "reconstructs the lines");
    c.example("lm-write latent decode univae/ --latents points.npy --num-beams 4",
              "beam search: the best text for each row");
    c.option("--latents", "FILE", o->latents,
             "read the points from this .npy or .safetensors instead of standard input");
    declare_common(c, *o, false, true);
    set_action(c, o, decode);
  }
  {
    auto o = std::make_shared<Options>();
    cli::Command& c = parent.subcommand("sample", "writes texts from random points");
    c.example("lm-write latent sample univae/ --count 10", "ten texts");
    c.option("-n,--count", "N", o->count, cli::AllowedRange{1, 1e9}, "number of points");
    declare_common(c, *o, std::nullopt, true);
    set_action(c, o, sample);
  }
  {
    auto o = std::make_shared<Options>();
    cli::Command& c = parent.subcommand(
        "interpolate", "writes texts between two texts; input lines: text TAB text");
    c.example(R"(printf 'a man sleeps\tthe dogs run\n' | lm-write latent interpolate univae/)",
              "five texts; the first and the last reconstruct the two inputs");
    c.option("--steps", "N", o->steps, cli::AllowedRange{2, 1e6}, "points, including both ends");
    declare_common(c, *o, true, true);
    set_action(c, o, interpolate);
  }
  {
    auto o = std::make_shared<Options>();
    cli::Command& c = parent.subcommand(
        "swap", "rewrites a text with one point of another; input lines: text TAB text");
    c.example("lm-write latent swap univae/ --function-words words < pairs",
              "swaps each bottleneck in turn and counts the words that change");
    c.option("--bottleneck", "M", o->block, cli::AllowedRange{1, 1e4},
             "bottleneck to swap, counted from 1 [each in turn]");
    c.option("--function-words", "FILE", o->function_words,
             "list of words whose changes are counted separately");
    declare_common(c, *o, true, true);
    set_action(c, o, swap);
  }
}

}  // namespace masque::lm_write
