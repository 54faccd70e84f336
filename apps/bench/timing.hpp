// Repeated timings.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "cli/command.hpp"

namespace masque::bench {

/// Milliseconds of repeated runs.
struct Timing {
  double median = 0;
  double least = 0;
  double most = 0;
};

/// Runs `work` once to warm up, then `repeats` times.
inline Timing time_of(int repeats, const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  work();
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) {
    const auto begin = Clock::now();
    work();
    times.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.front(), times.back()};
}

/// --repeats of timings: runs, or steps of training.
template <class Number>
void add_repeats(cli::Command& command, Number& repeats) {
  command.option("--repeats", "R", repeats, cli::AllowedRange{1, 1e6}, "number of timed runs");
}

}  // namespace masque::bench
