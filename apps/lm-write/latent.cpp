// lm-write latent: texts and the points of a model with latent bottlenecks.
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "base/edit_distance.hpp"
#include "base/error.hpp"
#include "base/interrupt.hpp"
#include "base/json_writer.hpp"
#include "base/parallel.hpp"
#include "base/split.hpp"
#include "commands.hpp"
#include "commands/result_format.hpp"
#include "commands/text_stream.hpp"
#include "commands/vector_file.hpp"
#include "kernel/strip_weights.hpp"
#include "latent_texts.hpp"

namespace masque::lm_write {

namespace {

struct Options {
  GenerateOptions generate{.kind = Continuation::kUnilm};
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
                const model::LatentDesign& latent, const probe::LatentPoints& points) {
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
                    [&](std::uint64_t id, std::vector<probe::LatentPoints>&& all) {
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
void prepare(const Options& o, cli::Session& session, bool draws_points = false) {
  session.configure(o.generate.open.common);
  GenerateOptions checked = o.generate;
  if (draws_points) checked.seed.reset();
  check_text_options(checked);
  // A row a text and token: weights come from memory for each of them.
  kernel::choose_product(kernel::ProductChoice::kFewRows);
}

cli::ExitCode decode(const Options& o, const cli::Command& command, cli::Session& session) {
  const GenerateOptions& g = o.generate;
  prepare(o, session);
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
    file.read([&](probe::LatentPoints&& points) { writer.add(id++, 0, std::move(points)); });
    writer.flush();
    return cli::ExitCode::kDone;
  }
  printer.header();
  commands::LineWork work;
  work.label = "decoding";
  work.use = [&](std::uint64_t id, std::string_view line) {
    probe::LatentPoints points;
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
  const GenerateOptions& g = o.generate;
  prepare(o, session, true);
  const commands::OpenedModel opened = open_latent_model(g.open, session);
  TextPrinter printer(g, opened, nullptr, session);
  LatentWriter writer(g, opened, [&](const auto& text) { printer.print(text); });
  printer.header();
  for (std::int64_t i = 0; i < o.count; ++i) {
    throw_if_interrupted();
    const auto id = static_cast<std::uint64_t>(i);
    writer.add(id, 0, probe::random_points(latent_of(opened), g.seed.value_or(0), id));
  }
  writer.flush();
  return cli::ExitCode::kDone;
}

/// Runs over pairs of texts; `use` writes what it makes of the points of both.
cli::ExitCode run_pairs(const GenerateOptions& g, const cli::Command& command,
                        const commands::OpenedModel& opened, LatentWriter& writer,
                        const std::function<void(std::uint64_t, const probe::LatentPoints&,
                                                 const probe::LatentPoints&)>& use,
                        cli::Session& session) {
  LatentLines lines(opened, g.open.batch_tokens, 2,
                    [&](std::uint64_t id, std::vector<probe::LatentPoints>&& both) {
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
  const GenerateOptions& g = o.generate;
  prepare(o, session);
  cli::need_stream(command);
  const commands::OpenedModel opened = open_latent_model(g.open, session);
  TextPrinter printer(g, opened, "step", session);
  LatentWriter writer(g, opened, [&](const auto& text) { printer.print(text); });
  printer.header();
  return run_pairs(
      g, command, opened, writer,
      [&](std::uint64_t id, const probe::LatentPoints& a, const probe::LatentPoints& b) {
        for (std::int64_t step = 0; step < o.steps; ++step) {
          const double share = static_cast<double>(step) / static_cast<double>(o.steps - 1);
          writer.add(id, step, probe::points_between(latent_of(opened), a, b, share));
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
  const GenerateOptions& g = o.generate;
  prepare(o, session);
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
      [&](std::uint64_t id, const probe::LatentPoints& a, const probe::LatentPoints& b) {
        writer.add(id, 0, a);
        for (Index m = 1; m <= latent.layers; ++m) {
          if (!o.block || *o.block == m)
            writer.add(id, m, probe::with_point_of(latent, a, b, m - 1));
        }
      },
      session);
}

/// The options of all commands; `text`: of those that read lines, whether these are text, else they
/// are points; `writes`: of those that write texts.
void declare_common(cli::Command& c, Options& o, std::optional<bool> text, bool writes) {
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
