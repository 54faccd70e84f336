// lm-score embed: a vector for each line.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json_writer.hpp"
#include "commands.hpp"
#include "commands/result_format.hpp"
#include "commands/text_stream.hpp"
#include "store/checkpoint_writer.hpp"
#include "store/numpy/array_writer.hpp"
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
        wide_(opened.opened.model->precision() == kernel::Precision::kF64),
        size_(opened.dim),
        number_(commands::ResultFormat::of(opened.opened.model->precision(),
                                           options.vectors.open.digits)),
        provenance_(opened.provenance),
        session_(session) {}

  void add(std::uint64_t id, const std::vector<double>& vector) {
    if (options_.output) {
      for (const double value : vector) append(value);
      ++count_;
      return;
    }
    std::string out;
    if (options_.vectors.open.common.json) {
      JsonWriter json(out);
      json.begin_object().member("id", id).raw(provenance_).key("vector").begin_array();
      for (const double x : vector) json.raw(number_.json(x));
      json.end_array().end_object();
    } else {
      for (const double x : vector) out += (out.empty() ? "" : "\t") + number_.text(x);
    }
    session_.print(out + "\n");
  }

  /// Writes the file, if one is requested.
  void finish() {
    if (!options_.output) return;
    const Shape shape{count_, static_cast<std::uint64_t>(size_)};
    const DType dtype = wide_ ? DType::kF64 : DType::kF32;
    const auto fill = [this](std::uint64_t offset, MutableBytes out) {
      const auto begin = bytes_.begin() + static_cast<std::ptrdiff_t>(offset);
      std::copy_n(begin, out.size(), out.begin());
    };
    if (options_.output->ends_with(".npy")) {
      store::write_npy(*options_.output, dtype, shape, fill, 1);
      return;
    }
    store::OutputTensor tensor{{"embeddings", dtype, shape, 0, bytes_.size(), 0},
                               store::Computed{fill}};
    store::write_checkpoint_file(*options_.output, {.tensors = {std::move(tensor)}},
                                 {.threads = 1});
  }

 private:
  void append(double value) {
    if (wide_) {
      append_bytes(value);
    } else {
      append_bytes(static_cast<float>(value));
    }
  }
  template <class T>
  void append_bytes(T value) {
    const Bytes bytes = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }

  const Options& options_;
  bool wide_;
  Index size_;
  commands::ResultFormat number_;
  std::string provenance_;
  cli::Session& session_;
  std::vector<std::byte> bytes_;
  std::uint64_t count_ = 0;
};

void check(const Options& o) {
  if (!o.output) return;
  if (o.vectors.open.common.json) throw UsageError("--json and -o, expected one");
  if (!o.output->ends_with(".npy") && !o.output->ends_with(".safetensors"))
    throw UsageError("-o: expected a name that ends in .npy or .safetensors");
}

cli::ExitCode run(const Options& o, const cli::Command& command, cli::Session& session) {
  session.configure(o.vectors.open.common);
  check(o);
  cli::need_stream(command);
  const OpenedVectors opened = open_vectors(o.vectors, session);
  VectorOutput output(o, opened, session);
  WhitenedVectors whitened(opened);
  std::vector<std::uint64_t> ids;
  probe::VectorMaker maker(*opened.opened.model, opened.options,
                           [&](std::uint64_t id, std::vector<double>&& vector) {
                             if (!opened.whiten) return output.add(id, vector);
                             whitened.add(vector);
                             ids.push_back(id);
                           });
  commands::LineWork work;
  work.use = [&](std::uint64_t id, std::string_view line) {
    probe::Sentence sentence = encode_sentence(*opened.opened.tokenizer, line, opened.sentence);
    if (const auto problem = maker.length_problem(sentence))
      commands::refuse_line(o.stream, id, *problem);
    maker.add(id, std::move(sentence));
  };
  work.flush = [&] { maker.flush(); };
  const cli::ExitCode code = commands::run_lines(o.stream, command, work, session);
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
  cli::Command& c = tool.subcommand("embed", "vectors of the lines of standard input");
  c.example("lm-score embed all-MiniLM-L6-v2/ -o vectors.npy < text",
            "pooled as the folder's modules.json specifies");
  c.example("lm-score embed bert-base-uncased/ --pooling first-last --whiten --dim 256 < text",
            "whitened, as numbers separated by tabs");
  add_vectors(c, o->vectors);
  c.option("-o,--output", "FILE", o->output,
           "a matrix: .npy, or .safetensors with the tensor embeddings");
  commands::add_digits(c, o->vectors.open.digits);
  commands::add_stream(c, o->stream);
  add_json(c, o->vectors.open.common);
  c.action([o, &c](cli::Session& session) { return run(*o, c, session); });
}

}  // namespace masque::lm_score
