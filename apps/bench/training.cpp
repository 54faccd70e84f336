// bench training: steps of training (forward, backward, AdamW) on random ids.
#include <sys/resource.h>

#include <array>
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/random/random.hpp"
#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "commands/run_options.hpp"
#include "kernel/optimizer.hpp"
#include "kernel/parallel.hpp"
#include "model/checkpoint/save.hpp"
#include "timing.hpp"
#include "train/network/network.hpp"
#include "train/network/recipe.hpp"

namespace masque::bench {

namespace {

enum class Ask { kMasked, kEverywhere, kNext };

struct Case {
  const char* name;
  Index layers, hidden, heads, inner, vocabulary, batch, length;
  Ask ask;
  bool gated_units = false;
};

constexpr std::array<Case, 7> kCases{{
    {"mlm_masked", 4, 256, 4, 1024, 30522, 32, 128, Ask::kMasked},
    {"mlm_all", 4, 256, 4, 1024, 30522, 32, 128, Ask::kEverywhere},
    {"small64", 2, 256, 4, 1024, 8192, 32, 64, Ask::kNext},
    {"small512", 2, 256, 4, 1024, 8192, 16, 512, Ask::kNext},
    {"gau", 4, 256, 1, 512, 8192, 32, 64, Ask::kMasked, true},
    {"bert_base", 12, 768, 12, 3072, 30522, 8, 128, Ask::kMasked},
    {"gpt2", 12, 768, 12, 3072, 50257, 4, 64, Ask::kNext},
}};

struct Options {
  int repeats = 5;
  std::string filter;
  std::int64_t chunk_tokens = 1024;
  kernel::Precision precision = kernel::Precision::kF32;
  cli::CommonOptions common;
};

model::Design design_of(const Case& c) {
  train::DesignRecipe recipe;
  recipe.vocab_size = c.vocabulary;
  recipe.num_hidden_layers = c.layers;
  recipe.hidden_size = c.hidden;
  recipe.num_attention_heads = c.heads;
  recipe.intermediate_size = c.inner;
  recipe.max_position_embeddings = c.length;
  if (c.gated_units) {
    recipe.layer_kind = "gated_attention";
    recipe.position = "rope";
  }
  if (c.ask == Ask::kNext) recipe.norm_placement = "pre";
  recipe.head_transform = c.ask != Ask::kNext && !c.gated_units;
  model::Design design = train::design_of(recipe);
  design.mask = c.ask == Ask::kNext ? model::DefaultMask::kCausal : model::DefaultMask::kFull;
  design.head.kind = c.ask == Ask::kNext ? model::HeadKind::kCausal : model::HeadKind::kMasked;
  return design;
}

std::vector<train::Example> batch_of(const Case& c, std::uint64_t step) {
  std::vector<train::Example> batch(static_cast<std::size_t>(c.batch));
  for (std::size_t s = 0; s < batch.size(); ++s) {
    const RandomStream random(step, "bench training", s);
    for (Index i = 0; i < c.length; ++i) {
      const PhiloxBlock words = random.block(static_cast<std::uint64_t>(i));
      batch[s].ids.push_back(
          static_cast<TokenId>(words[0] % static_cast<std::uint32_t>(c.vocabulary)));
      if (c.ask == Ask::kMasked && words[1] % 100 >= 15) continue;
      batch[s].rows.push_back(i);
      batch[s].targets.push_back(
          static_cast<TokenId>(words[2] % static_cast<std::uint32_t>(c.vocabulary)));
    }
  }
  return batch;
}

/// As the scripts of the peers count them: 6 for each weight that meets a token, and attention.
double operations(const Case& c, double tokens, double rows) {
  const auto d = static_cast<double>(c.hidden), inner = static_cast<double>(c.inner);
  const auto layers = static_cast<double>(c.layers), n = static_cast<double>(c.length);
  const bool transform = c.ask != Ask::kNext && !c.gated_units;
  const double body = c.gated_units ? d * (2 * inner + 128) + inner * d : 4 * d * d + 2 * d * inner;
  const double attention = c.gated_units ? 6 * n * (128 + inner) : 12 * n * d;
  const double head = static_cast<double>(c.vocabulary) * d + (transform ? d * d : 0);
  return tokens * layers * (6 * body + attention) + rows * 6 * head;
}

double peak_memory() {
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void measure(const Case& c, const Options& o, cli::Table& table) {
  const model::Design design = design_of(c);
  const model::ModelPlan plan = model::saved_design(design).plan;
  train::Parameters<float> parameters;
  const train::ParameterMap map = train::add_model(plan, model::head_like(plan, design.head), "",
                                                   train::ParameterMap(), parameters);
  train::initialize_parameters(design, map, {}, parameters);
  train::Network<float> network(design, map, parameters, o.precision);
  network.chunk_rows = o.chunk_tokens;
  const auto size = static_cast<Index>(parameters.values().size());
  Matrix<float> first = Matrix<float>::zero(1, size), second = Matrix<float>::zero(1, size);
  std::int64_t step = 0;
  double rows = 0;
  const auto work = [&] {
    ++step;
    const std::vector<train::Example> batch = batch_of(c, static_cast<std::uint64_t>(step));
    const double total = train::total_weight(batch);
    rows = total;
    parameters.clear_gradients();
    network.prepare();
    network.train(batch, 1 / total, {});
    kernel::OptimizerSettings settings;
    settings.step = step;
    kernel::adamw_update<float>(
        settings, {parameters.values(), parameters.gradients(), first.span(), second.span()});
  };
  work();
  const Timing timing = time_of(o.repeats, work);
  const auto tokens = static_cast<double>(c.batch * c.length);
  table.row({c.name, std::string(kernel::precision_name(o.precision)),
             static_cast<std::int64_t>(kernel::threads()), timing.median, timing.least, timing.most,
             tokens / timing.median * 1e3, operations(c, tokens, rows) / timing.median / 1e6,
             peak_memory()});
}

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  kernel::set_threads(o.common.threads);
  cli::Table table(session, o.common,
                   {"case", "precision", "threads", "ms", "ms_min", "ms_max", "tokens/s", "gflop/s",
                    "peak_mib"});
  for (const Case& c : kCases) {
    if (std::string_view(c.name).find(o.filter) != std::string_view::npos) measure(c, o, table);
  }
  table.finish();
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_training(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand(
      "training", "speed of training steps: forward, backward and AdamW on random ids");
  c.example("bench training --filter mlm_masked -j 1", "one case, on one thread");
  c.option("--filter", "TEXT", o->filter, "time only cases with TEXT in their name");
  commands::add_training_precision(c, o->precision);
  commands::add_chunk_tokens(c, o->chunk_tokens);
  add_repeats(c, o->repeats);
  add_threads(c, o->common);
  add_table(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::bench
