// What the machine can do at most, measured: the measure of every kernel.
#pragma once

namespace masque::bench {

struct Peak {
  double product = 0;  ///< GFLOP/s of multiply-adds in registers, in float
  double memory = 0;   ///< GB/s of reading far more than the caches hold
};

/// With the instruction set in use, on so many threads. Takes half a second.
Peak measure_peak(int threads);

}  // namespace masque::bench
