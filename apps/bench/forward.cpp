// bench forward: tokens a second of whole models.
#include <fstream>
#include <memory>
#include <numeric>
#include <span>
#include <sstream>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json/json.hpp"
#include "base/random/random.hpp"
#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "commands/run_options.hpp"
#include "kernel/parallel.hpp"
#include "model/model.hpp"
#include "product.hpp"
#include "timing.hpp"

namespace masque::bench {
namespace {

struct Options {
  std::string model;
  std::vector<std::string> shapes;
  kernel::Precision precision = kernel::Precision::kF32;
  std::string ids;
  int batch_tokens = 4096;
  bool targets = false;
  kernel::ProductChoice product = kernel::ProductChoice::kByShape;
  int repeats = 9;
  cli::CommonOptions common;
};

struct Shape {
  Index batch = 0;
  Index length = 0;
};

Shape shape_of(const std::string& text) {
  Shape shape;
  const std::size_t x = text.find('x');
  if (x != std::string::npos) {
    shape.batch = static_cast<Index>(parse_unsigned(text.substr(0, x)).value_or(0));
    shape.length = static_cast<Index>(parse_unsigned(text.substr(x + 1)).value_or(0));
  }
  if (shape.batch < 1 || shape.length < 1) {
    throw UsageError(fmt::format("shape '{}', expected BATCHxLENGTH", text));
  }
  return shape;
}

// Multiply-adds of the layers' matrix products, counted twice.
double flops(const model::Design& d, Shape shape) {
  const auto h = static_cast<double>(d.hidden_size);
  const auto f = static_cast<double>(d.intermediate_size) * (d.gated ? 1.5 : 1);
  return static_cast<double>(d.num_hidden_layers * shape.batch * shape.length) *
         (2 * (4 * h * h + 2 * h * f) + 4 * static_cast<double>(shape.length) * h);
}

// One line of the table: what was run, and how long it took.
struct Work {
  Index batch = 0;   ///< sequences
  Index length = 0;  ///< of each; 0: mixed
  std::vector<model::Batch> batches;
};

std::vector<TokenId> random_ids(Index count, Index vocab_size) {
  std::vector<std::uint32_t> words(static_cast<std::size_t>(count));
  RandomStream(1, "bench").words(words.size(), words.data());
  std::vector<TokenId> ids;
  ids.reserve(words.size());
  for (const std::uint32_t word : words) {
    ids.push_back(static_cast<TokenId>(word % static_cast<std::uint32_t>(vocab_size)));
  }
  return ids;
}

Work fixed_lengths(Shape shape, Index vocab_size) {
  Work work{shape.batch, shape.length, {1, model::Batch{}}};
  const std::vector<TokenId> ids = random_ids(shape.batch * shape.length, vocab_size);
  for (Index s = 0; s < shape.batch; ++s) {
    work.batches[0].add(std::span(ids).subspan(static_cast<std::size_t>(s * shape.length),
                                               static_cast<std::size_t>(shape.length)));
  }
  return work;
}

// Lines of ids in file order, in batches of at most so many tokens.
Work mixed_lengths(const std::string& path, Index batch_tokens) {
  Work work;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    std::vector<TokenId> ids;
    std::istringstream words(line);
    for (TokenId id = 0; words >> id;) ids.push_back(id);
    if (work.batches.empty() ||
        std::ssize(work.batches.back().ids) + std::ssize(ids) > batch_tokens) {
      work.batches.emplace_back();
    }
    work.batches.back().add(ids);
    ++work.batch;
  }
  if (work.batches.empty()) throw InputError(path, "no lines of ids, expected some");
  return work;
}

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  kernel::set_threads(o.common.threads);
  kernel::choose_product(o.product);
  std::vector<Shape> shapes;
  for (const std::string& text : o.shapes) shapes.push_back(shape_of(text));
  if (shapes.empty() && o.ids.empty()) shapes = {{1, 16}, {1, 128}, {8, 128}, {32, 128}, {4, 512}};
  model::ModelOptions options;
  options.precision = o.precision;
  std::unique_ptr<model::Model> model;
  const Timing load = time_of(1, [&] {
    model.reset();  // one at a time: it may be large
    model = model::open_model(o.model, options);
  });
  std::vector<Work> works;
  works.reserve(shapes.size() + 1);
  for (const Shape shape : shapes) {
    works.push_back(fixed_lengths(shape, model->design().vocab_size));
  }
  if (!o.ids.empty()) works.push_back(mixed_lengths(o.ids, o.batch_tokens));
  cli::Table table(session, o.common,
                   {"batch", "length", "precision", "threads", "load_ms", "ms", "ms_min", "ms_max",
                    "tokens/s", "gflop/s"});
  for (const Work& work : works) {
    Index tokens = 0;
    double operations = 0;
    for (const model::Batch& batch : work.batches) {
      tokens += std::ssize(batch.ids);
      for (Index s = 0; s < batch.sequences(); ++s) {
        operations += flops(model->design(), {1, batch.length(s)});
      }
    }
    const Timing timing = time_of(o.repeats, [&] {
      for (const model::Batch& batch : work.batches) {
        model::Request request;
        request.all_rows = true;
        if (o.targets) request.targets = batch.ids;
        model->run(batch, request);
      }
    });
    table.row({work.batch, work.length, std::string(kernel::precision_name(o.precision)),
               static_cast<std::int64_t>(kernel::threads()), load.median, timing.median,
               timing.least, timing.most, static_cast<double>(tokens) / timing.median * 1e3,
               operations / timing.median / 1e6});
  }
  table.finish();
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_forward(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand(
      "forward", "speed of a model up to its last hidden states, in tokens per second");
  c.example("bench forward bert-base --shape 1x128 --shape 32x128", "a checkpoint folder");
  c.argument("MODEL", o->model, "folder with config.json and weights");
  c.option("--shape", "BxN", o->shapes,
           "sequences and tokens of each; may be repeated [1x16 1x128 8x128 32x128 4x512]");
  commands::add_precision(c, o->precision);
  c.option("--ids", "FILE", o->ids, "file with lines of ids, used in this order instead of shapes");
  c.option("--batch-tokens", "N", o->batch_tokens, cli::AllowedRange{1, 1e9},
           "tokens in a batch of --ids");
  c.flag("--targets", o->targets, "also compute the log-probability of each token");
  add_product(c, o->product);
  add_repeats(c, o->repeats);
  add_threads(c, o->common);
  add_table(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::bench
