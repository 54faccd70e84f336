// lm-score embed: a vector for each line.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json/json_writer.hpp"
#include "commands.hpp"
#include "commands/result_format.hpp"
#include "commands/scoring.hpp"
#include "commands/text_stream.hpp"
#include "commands/vector_file.hpp"
#include "vector_options.hpp"

namespace masque::lm_score {

namespace {

struct Options {
  VectorCommand vectors;
  commands::StreamOptions stream;
  std::optional<std::string> output;
};

/// Takes vectors in order, to stdout or for a file.
class VectorOutput {
 public:
  VectorOutput(const Options& options, const OpenedVectors& opened, cli::Session& session)
      : options_(options),
        number_(commands::ResultFormat::of(opened.opened.model->precision(),
                                           options.vectors.open.digits)),
        provenance_(opened.provenance),
        session_(session) {
    const cli::CommonOptions& common = options.vectors.open.common;
    commands::print_vector_header(opened.dim, commands::has_header(common, options.stream), common,
                                  session);
    if (options.output)
      file_.emplace(*options.output, "embeddings", opened.dim, opened.opened.model->precision());
  }

  void add(std::uint64_t id, const std::vector<double>& vector) {
    if (file_) return file_->add(vector);
    const cli::CommonOptions& common = options_.vectors.open.common;
    if (!common.json) return session_.print(commands::vector_line(vector, number_, common));
    std::string out;
    JsonWriter json(out);
    json.begin_object().member("id", id).raw(provenance_).key("vector").begin_array();
    for (const double x : vector) json.raw(number_.json(x));
    json.end_array().end_object();
    session_.print(out + "\n");
  }

  /// Writes the file, if one is requested.
  void finish() {
    if (file_) file_->finish();
  }

 private:
  const Options& options_;
  commands::ResultFormat number_;
  std::string provenance_;
  cli::Session& session_;
  std::optional<commands::VectorFile> file_;
};

void check(const Options& o) {
  if (!o.output) return;
  if (o.vectors.open.common.json) throw UsageError("--json and -o cannot be combined");
  if (o.vectors.open.common.csv) throw UsageError("--csv and -o cannot be combined");
  commands::VectorFile::check_name(*o.output);
}

cli::ExitCode run(const Options& o, const cli::Command& command, cli::Session& session) {
  session.configure(o.vectors.open.common);
  check(o);
  cli::need_stream(command);
  const OpenedVectors opened = open_vectors(o.vectors, nullptr, session);
  VectorOutput output(o, opened, session);
  WhitenedVectors whitened(opened);
  std::vector<std::uint64_t> ids;
  evaluate::VectorMaker maker(*opened.opened.model, opened.options,
                              [&](std::uint64_t id, std::vector<double>&& vector) {
                                if (!opened.whiten) return output.add(id, vector);
                                whitened.add(vector);
                                ids.push_back(id);
                              });
  commands::LineWork work;
  work.use = [&](std::uint64_t id, std::string_view line) -> std::optional<std::string> {
    evaluate::Sentence sentence = opened.sentence_of(line);
    if (auto problem = maker.length_problem(sentence)) return problem;
    maker.add(id, std::move(sentence));
    return std::nullopt;
  };
  work.flush = [&] { maker.flush(); };
  commands::StreamOptions stream = o.stream;
  if (o.vectors.long_texts == LongTexts::kSkip) stream.input.bad = cli::BadLines::kSkip;
  const cli::ExitCode code = commands::run_lines(stream, command, work, session);
  commands::note_shortened(maker.shortened(), session);
  if (opened.whiten) {
    whitened.fit();
    for (Index i = 0; i < whitened.count(); ++i)
      output.add(ids[static_cast<std::size_t>(i)], whitened.get(i));
  }
  output.finish();
  return code;
}

}  // namespace

void declare_embed(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("embed", "sentence vectors of the lines of standard input");
  c.example("lm-score embed all-MiniLM-L6-v2/ -o vectors.npy < text",
            "pooled as the folder's modules.json specifies");
  c.example("lm-score embed bert-base-uncased/ --pooling first-last --whiten --dim 256 < text",
            "whitened to 256 dimensions, as tab-separated numbers");
  add_vectors(c, o->vectors);
  c.option("-o,--output", "FILE", o->output,
           "writes a matrix: .npy, or .safetensors with the tensor 'embeddings'");
  commands::add_digits(c, o->vectors.open.digits);
  commands::add_stream(c, o->stream, {.policy = false});
  c.flag("--json", o->vectors.open.common.json, "prints one JSON object per line instead of TSV");
  commands::add_vector_csv(c, o->vectors.open.common);
  c.writes({"output"});
  c.action([o, &c](cli::Session& session) { return run(*o, c, session); });
}

}  // namespace masque::lm_score
