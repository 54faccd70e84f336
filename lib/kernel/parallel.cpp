#include "kernel/parallel.hpp"

#include <algorithm>
#include <atomic>

#include "base/parallel.hpp"
#include "kernel/team.hpp"

namespace masque::kernel {
namespace {

std::atomic<int> g_threads{0};

}  // namespace

void set_threads(int threads) { g_threads = std::max(threads, 0); }

int threads() {
  if (Team::inside()) return 1;
  const int chosen = g_threads.load(std::memory_order_relaxed);
  if (chosen > 0) return chosen;
  static const int kProcessors = default_threads();
  return kProcessors;
}

void parallel_ranges(Index count, Index grain, const std::function<void(Index, Index)>& work) {
  const Index parts = std::min<Index>(threads(), count / std::max<Index>(grain, 1));
  if (parts < 2) {
    if (count > 0) work(0, count);
    return;
  }
  Team::of_process().run(parts, [&](Index part) {
    const Index begin = count * part / parts, end = count * (part + 1) / parts;
    if (begin < end) work(begin, end);
  });
}

void parallel_items(Index count, const std::function<void(Index)>& work) {
  SharedLoop loop(count, work);
  const Index team = std::min<Index>(threads(), count);
  if (team < 2) {
    loop.run();
  } else {
    Team::of_process().run(team, [&loop](Index) { loop.run(); });
  }
  loop.finish();
}

}  // namespace masque::kernel
