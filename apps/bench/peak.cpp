// bench peak: what the processor and its memory can do at most, with each instruction set.
#include "peak.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/processor/processor.hpp"
#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "kernel/parallel.hpp"
#include "tensor/matrix.hpp"
#include "timing.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "../apps/bench/peak.cpp"
#include "base/processor/simd.hpp"
#include "kernel/number/group-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace masque::bench {
namespace HWY_NAMESPACE {

using Native = kernel::HWY_NAMESPACE::Native<float>;

/// Chains of multiply-adds that need nothing but registers. Returns operations.
double run_products(long steps, float* out) {
  constexpr int kChains = 10;
  Native::Vector sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = Native::set(static_cast<float>(i));
  const auto a = Native::set(out[0]);
  const auto b = Native::set(out[1]);
  for (long step = 0; step < steps; ++step) {
#pragma GCC unroll 10
    for (int i = 0; i < kChains; ++i) sums[i] = Native::mul_add(sums[i], a, b);
  }
  auto total = sums[0];
  for (int i = 1; i < kChains; ++i) total = Native::add(total, sums[i]);
  Native::store(total, out);
  return 2.0 * kChains * Native::kLanes * static_cast<double>(steps);
}

/// The sum of many numbers, so that every one is read.
void read_all(const float* x, Index n, float* out) {
  constexpr Index kStep = Index{8} * Native::kLanes;
  Native::Vector sums[8];
  for (auto& s : sums) s = Native::zero();
  for (Index i = 0; i + kStep <= n; i += kStep) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j)
      sums[j] = Native::add(sums[j], Native::load(x + i + Index{j} * Native::kLanes));
  }
  for (int j = 1; j < 8; ++j) sums[0] = Native::add(sums[0], sums[j]);
  Native::store(sums[0], out);
}

}  // namespace HWY_NAMESPACE
}  // namespace masque::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace masque::bench {

namespace {

HWY_EXPORT(run_products);
HWY_EXPORT(read_all);

struct Options {
  cli::CommonOptions common;
};

/// The best of a few runs of work(thread) on all threads, in milliseconds.
template <class Work>
double least_time(int threads, const Work& work) {
  return time_of(7, [&] { kernel::parallel_items(threads, work); }).least;
}

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  kernel::set_threads(o.common.threads);
  cli::Table table(session, o.common, {"set", "threads", "product_gflops", "memory_gbs"});
  const Peak peak = measure_peak(kernel::threads());
  table.row(
      {std::string(name_of(instruction_set())), kernel::threads(), peak.product, peak.memory});
  table.finish();
  return cli::ExitCode::kDone;
}

}  // namespace

Peak measure_peak(int threads) {
  constexpr long kSteps = 1000000;
  Matrix<float> results = Matrix<float>::zero(threads, 64);
  for (int t = 0; t < threads; ++t) {
    results.view().at(t, 0) = 0.5F;
    results.view().at(t, 1) = 0.25F;
  }
  std::atomic<double> operations = 0;
  Peak peak;
  const double products = least_time(threads, [&](Index thread) {
    float out[64];
    std::copy_n(results.view().row(thread), 64, out);
    operations = HWY_DYNAMIC_DISPATCH(run_products)(kSteps, out);
    results.view().at(thread, 2) = out[0];
  });
  peak.product = operations * threads / products / 1e6;
  constexpr Index kFloats = Index{1} << 25U;  // 128 MB a thread
  std::vector<Matrix<float>> memory;
  memory.reserve(static_cast<std::size_t>(threads));
  for (int t = 0; t < threads; ++t) memory.push_back(Matrix<float>::zero(1, kFloats));
  const double reading = least_time(threads, [&](Index thread) {
    HWY_DYNAMIC_DISPATCH(read_all)
    (memory[static_cast<std::size_t>(thread)].data(), kFloats, results.view().row(thread));
  });
  peak.memory = static_cast<double>(kFloats) * sizeof(float) * threads / reading / 1e6;
  return peak;
}

void declare_peak(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand(
      "peak", "peak speed of products in registers and of memory, with one instruction set");
  c.example("bench peak", "with the best instruction set");
  c.example("MASQUE_CPU=avx2 bench peak -j 1", "with AVX2, on one thread");
  add_threads(c, o->common);
  add_table(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::bench
#endif
