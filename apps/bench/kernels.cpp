// bench kernels: every case of the kernels' table, one after the other.
#include <memory>

#include "base/processor/processor.hpp"
#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "kernel/parallel.hpp"
#include "peak.hpp"
#include "product.hpp"
#include "support/kernel_run.hpp"
#include "timing.hpp"

namespace masque::bench {

namespace {

using test::KernelCase;
using test::Operation;

struct Options {
  int repeats = 9;
  std::string filter;
  kernel::ProductChoice product = kernel::ProductChoice::kByShape;
  cli::CommonOptions common;
};

struct Measured {
  Timing timing;
  double rate = 0;
  const char* unit = "";
};

/// Enough runs in one measurement to last a while; milliseconds of one run.
Timing time_of_one(int repeats, const std::function<void()>& work) {
  const double once = time_of(1, work).median;
  const int inside = once >= 2 ? 1 : static_cast<int>(2 / std::max(once, 1e-4)) + 1;
  Timing timing = time_of(repeats, [&] {
    for (int i = 0; i < inside; ++i) work();
  });
  timing.median /= inside;
  timing.least /= inside;
  timing.most /= inside;
  return timing;
}

/// Bytes that have to be read and written, for kernels without products.
double bytes(const test::KernelRun<float>& run) {
  double count = 2 * static_cast<double>(run.result.span().size());
  const double elements = static_cast<double>(run.c.rows) * static_cast<double>(run.c.columns);
  if (run.c.operation == Operation::kExpSum) return elements * sizeof(float);
  // Both moments are read and written; LAMB reads all but the gradient again, and writes the value.
  if (run.c.operation == Operation::kAdamW) count += 4 * elements;
  if (run.c.operation == Operation::kLamb) count += 7 * elements;
  if (run.c.operation != Operation::kEmbedding) {
    for (std::size_t i = 1; i < run.inputs.size(); ++i) {
      count += static_cast<double>(run.inputs[i].span().size());
    }
  }
  return count * sizeof(float);
}

Measured measure(const KernelCase& c, int repeats, bool backward) {
  test::KernelRun<float> run(c);
  run.forward();
  const Timing timing = time_of_one(repeats, [&] { backward ? run.backward() : run.forward(); });
  // The head's loss computes the logits again with its gradients.
  const double products = !backward ? 1 : c.operation == Operation::kVocabularyLoss ? 3 : 2;
  const double work = products * c.work();
  if (work > 0) return {timing, work / timing.median / 1e6, "GF/s"};
  return {timing, bytes(run) / timing.median / 1e6, "GB/s"};
}

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  kernel::set_threads(o.common.threads);
  kernel::choose_product(o.product);
  cli::Table table(session, o.common,
                   {"case", "set", "rows", "columns", "inputs", "threads", "ms", "ms_min", "ms_max",
                    "rate", "unit", "share"});
  const Peak peak = measure_peak(kernel::threads());
  for (const KernelCase& c : test::large_kernel_cases()) {
    for (const bool backward : {false, true}) {
      const std::string name = c.name + (backward ? "_backward" : "");
      if (name.find(o.filter) == std::string::npos || (backward && !c.has_backward())) continue;
      const Measured m = measure(c, o.repeats, backward);
      const double most = std::string_view(m.unit) == "GF/s" ? peak.product : peak.memory;
      table.row({name, std::string(name_of(instruction_set())), c.rows, c.columns, c.inputs,
                 kernel::threads(), m.timing.median, m.timing.least, m.timing.most, m.rate, m.unit,
                 m.rate / most});
    }
  }
  table.finish();
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_kernels(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand(
      "kernels",
      "speed of products, norms, softmax and other kernels at shapes of BERT-base and of training");
  c.example("bench kernels --filter linear -j 1", "matrix products on one thread");
  c.example("MASQUE_CPU=avx2 bench kernels",
            "with the instructions of a processor without AVX-512");
  c.option("--filter", "TEXT", o->filter, "time only cases with TEXT in their name");
  add_product(c, o->product);
  add_repeats(c, o->repeats);
  add_threads(c, o->common);
  add_table(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::bench
