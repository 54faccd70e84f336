// bench attention: the speed of attention alone, by evaluation and mask.
#include <cmath>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/random/random.hpp"
#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "kernel/parallel.hpp"
#include "mask/expression.hpp"
#include "nn/attention/attention_evaluation.hpp"
#include "nn/attention/differentiable_attention.hpp"
#include "timing.hpp"

namespace masque::bench {

namespace {

struct Options {
  int length = 4096;
  int batch = 1;
  int heads = 8;
  int head_size = 64;
  int repeats = 7;
  std::vector<std::string> masks;
  std::string evaluation = "auto";
  std::string normalizer = "softmax";
  bool bf16 = false;
  bool training = false;
  double dropout = 0;
  cli::CommonOptions common;
};

Matrix<float> random_matrix(Index rows, Index columns, std::uint64_t seed) {
  Matrix<float> out(rows, columns);
  std::vector<double> row(static_cast<std::size_t>(columns));
  for (Index i = 0; i < rows; ++i) {
    RandomStream(seed, "bench attention", static_cast<std::uint64_t>(i))
        .normal(0, row.size(), row.data());
    std::copy(row.begin(), row.end(), out.view().row(i));
  }
  return out;
}

const nn::AttentionEvaluation& evaluation_of(const Options& o) {
  if (o.evaluation == "auto") return nn::choose_evaluation(o.length);
  const nn::AttentionEvaluation* found = nn::find_attention_evaluation(o.evaluation);
  if (found == nullptr)
    throw UsageError(
        fmt::format("no evaluation '{}', expected auto, block, dense or long", o.evaluation));
  return *found;
}

std::uint64_t visible_pairs(const mask::BlockMap& blocks) {
  std::uint64_t pairs = 0;
  for (Index i = 0; i < blocks.lengths().queries; ++i) {
    pairs += static_cast<std::uint64_t>(blocks.visible(i));
  }
  return pairs;
}

/// One sequence on its way forward and back.
struct Trained {
  Matrix<float> context, saved, d_query, d_key, d_value;
  Trained(Index length, Index heads, Index columns)
      : context(length, columns),
        saved(heads, length),
        d_query(Matrix<float>::zero(length, columns)),
        d_key(Matrix<float>::zero(length, columns)),
        d_value(Matrix<float>::zero(length, columns)) {}
};

/// Forward and backward of a batch of the same sequence.
Timing time_training(const Options& o, const nn::AttentionProblem<float>& problem) {
  const Matrix<float> d_context = random_matrix(o.length, problem.query.columns, 4);
  std::vector<Trained> sequences;
  sequences.reserve(static_cast<std::size_t>(o.batch));
  std::vector<nn::DifferentiableForward<float>> forward;
  std::vector<nn::DifferentiableBackward<float>> backward;
  for (int i = 0; i < o.batch; ++i) {
    Trained& t = sequences.emplace_back(o.length, o.heads, problem.query.columns);
    nn::DifferentiableAttention<float> attention{problem};
    attention.dropout = o.dropout;
    attention.stream = RandomStream(1, "bench attention", static_cast<std::uint64_t>(i));
    forward.push_back({attention, t.context.view(), t.saved.view()});
    backward.push_back({attention,
                        t.context.view(),
                        t.saved.view(),
                        d_context.view(),
                        {t.d_query.view(), t.d_key.view(), t.d_value.view()}});
  }
  return time_of(o.repeats, [&] {
    nn::differentiable_attention_forward<float>(forward);
    nn::differentiable_attention_backward<float>(backward);
  });
}

cli::ExitCode run(const Options& o, cli::Session& session) {
  if (o.training && o.evaluation != "auto")
    throw UsageError("--evaluation cannot be combined with --training");
  if (!o.training && o.dropout != 0) throw UsageError("--dropout needs --training");
  session.configure(o.common);
  kernel::set_threads(o.common.threads);
  const Index n = o.length;
  const Index columns = Index{o.heads} * o.head_size;
  const Matrix<float> query = random_matrix(n, columns, 1);
  const Matrix<float> key = random_matrix(n, columns, 2);
  const Matrix<float> value = random_matrix(n, columns, 3);
  nn::AttentionProblem<float> problem;
  problem.query = query.view();
  problem.key = key.view();
  problem.value = value.view();
  problem.num_heads = problem.num_key_value_heads = o.heads;
  problem.scale = 1 / std::sqrt(static_cast<double>(o.head_size));
  const std::shared_ptr<const nn::AttentionNormalizer> normalizer =
      nn::parse_normalizer(o.normalizer);
  problem.normalizer = normalizer.get();
  problem.bf16 = o.bf16;
  std::vector<Matrix<float>> contexts;
  contexts.reserve(static_cast<std::size_t>(o.batch));
  for (int i = 0; i < o.batch; ++i) contexts.emplace_back(n, columns);
  cli::Table table(
      session, o.common,
      {"mask", "length", "batch", "evaluation", "pairs", "GF/s", "ms", "ms_min", "ms_max"});
  const std::vector<std::string> usual = {"full", "causal", "causal_window(256)"};
  const nn::AttentionEvaluation& evaluation = evaluation_of(o);
  for (const std::string& text : o.masks.empty() ? usual : o.masks) {
    const mask::BlockMap blocks(mask::parse_mask(text).bind({n, n}));
    problem.blocks = text == "full" ? nullptr : &blocks;
    const Timing timing = o.training ? time_training(o, problem) : time_of(o.repeats, [&] {
      if (o.batch == 1) return nn::evaluate_attention(evaluation, problem, contexts.front().view());
      kernel::parallel_items(o.batch, [&](Index i) {
        nn::evaluate_attention(evaluation, problem, contexts[static_cast<std::size_t>(i)].view());
      });
    });
    const std::uint64_t pairs = visible_pairs(blocks);
    const double operations = (o.training ? 14.0 : 4.0) * static_cast<double>(pairs) *
                              static_cast<double>(columns) * o.batch;
    table.row({text, n, o.batch, o.training ? "training" : std::string(evaluation.name), pairs,
               operations / timing.median / 1e6, timing.median, timing.least, timing.most});
  }
  table.finish();
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_attention(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("attention", "speed of attention alone");
  c.example("bench attention -n 4096 -j 2", "a full, a causal and a window mask");
  c.example("bench attention -n 128 --batch 8 --heads 12 --mask full", "the shapes of an encoder");
  c.example("bench attention -n 128 --batch 32 --heads 4 --training", "forward and backward");
  c.option("-n,--length", "N", o->length, cli::AllowedRange{1, 1e7}, "queries and keys");
  c.option("--batch", "B", o->batch, cli::AllowedRange{1, 1e6},
           "sequences; if more than one, each thread computes whole sequences");
  c.option("--heads", "H", o->heads, cli::AllowedRange{1, 1e4}, "number of heads");
  c.option("--head-size", "D", o->head_size, cli::AllowedRange{1, 1e4}, "head size");
  c.option("--mask", "EXPR", o->masks, "mask to time, instead of the three; may be repeated");
  c.option("--evaluation", "NAME", o->evaluation,
           "how attention is computed: auto, block, dense or long");
  c.option("--normalizer", "NAME", o->normalizer,
           "function from scores to weights, such as log_n(base=64)");
  c.flag("--bf16", o->bf16, "matrix products with bfloat16 operands");
  c.flag("--training", o->training, "forward and backward, with what a training step keeps");
  c.option("--dropout", "P", o->dropout, cli::AllowedRange{0, 0.99},
           "dropout of attention weights, with --training");
  add_repeats(c, o->repeats);
  add_threads(c, o->common);
  add_table(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::bench
