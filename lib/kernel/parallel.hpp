// Threads of the kernels: one team for all. oneDNN is kept from starting its own.
//
// A kernel splits its outermost independent index. Inside a region that already runs in parallel
// everything is serial: a caller with enough independent work puts its own loop outside.
#pragma once

#include <algorithm>
#include <functional>

#include "base/types.hpp"

namespace masque::kernel {

/// Makes later kernels use `threads` threads; ≤ 0 means all processors that this process may use,
/// which is the default. Not while kernels run.
void set_threads(int threads);
/// Threads that a kernel called here would use: 1 inside a parallel region.
int threads();

/// Calls work(begin, end) for runs that make up [0, `count`), in parallel if there are at least
/// 2 · `grain` items. The runs depend on the number of threads: results must not depend on
/// them. `work` must not throw.
void parallel_ranges(Index count, Index grain, const std::function<void(Index, Index)>& work);

/// Rows of `columns` elements (or of that cost) that are worth a thread: the grain of cheap loops.
inline Index row_grain(Index columns) { return 16384 / std::max<Index>(columns, 1) + 1; }

/// Calls `work`(i) for each row i in [0, `rows`), in parallel by row_grain(columns), `columns`
/// being the elements of a row or its cost. As parallel_ranges.
template <class Work>
void for_rows(Index rows, Index columns, const Work& work) {
  parallel_ranges(rows, row_grain(columns), [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) work(i);
  });
}

/// Calls work(0) … work(count − 1) in increasing order of start, each on some thread; `count`
/// items, one call of `work` for each. The first exception stops further items and is rethrown
/// here; so does a noted signal.
void parallel_items(Index count, const std::function<void(Index)>& work);

}  // namespace masque::kernel
