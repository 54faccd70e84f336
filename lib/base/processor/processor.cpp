#include "base/processor/processor.hpp"

#include <hwy/targets.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/error.hpp"

namespace masque {

namespace {

struct Row {
  InstructionSet set;
  std::string_view name;
  std::int64_t better_targets;  ///< Highway's targets that are not to be used with it
};

#if defined(__x86_64__)
constexpr std::int64_t kAbove512 = HWY_AVX3 - 1;  // lower bits are better targets
constexpr std::array kRows = {
    Row{InstructionSet::kBaseline, "sse2", (HWY_SSSE3 << 1) - 1},
    Row{InstructionSet::kSse4, "sse4", HWY_SSE4 - 1},
    Row{InstructionSet::kAvx2, "avx2", HWY_AVX2 - 1},
    Row{InstructionSet::kAvx512, "avx512", kAbove512},
    Row{InstructionSet::kAvx512Bf16, "avx512_bf16", kAbove512},
    Row{InstructionSet::kAmx, "amx", kAbove512},
};

/// A bit of the answer of `cpuid` for the leaf of extended features.
bool extended_feature(unsigned subleaf, int reg, unsigned bit) {
  std::array<unsigned, 4> answer{};
  if (__get_cpuid_count(7, subleaf, &answer[0], &answer[1], &answer[2], &answer[3]) == 0) {
    return false;
  }
  return (answer[static_cast<std::size_t>(reg)] >> bit & 1U) != 0;
}

InstructionSet detect() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("sse4.2") == 0) return InstructionSet::kBaseline;
  if (__builtin_cpu_supports("avx2") == 0 || __builtin_cpu_supports("fma") == 0) {
    return InstructionSet::kSse4;
  }
  // The builtin also asks whether the system saves the registers.
  if (__builtin_cpu_supports("avx512f") == 0 || __builtin_cpu_supports("avx512bw") == 0 ||
      __builtin_cpu_supports("avx512dq") == 0 || __builtin_cpu_supports("avx512vl") == 0) {
    return InstructionSet::kAvx2;
  }
  constexpr int kEax = 0, kEdx = 3;
  if (!extended_feature(1, kEax, 5)) return InstructionSet::kAvx512;
  const bool amx = extended_feature(0, kEdx, 22) && extended_feature(0, kEdx, 24);
  return amx ? InstructionSet::kAmx : InstructionSet::kAvx512Bf16;
}
#elif defined(__aarch64__)
constexpr std::array kRows = {Row{InstructionSet::kNeon, "neon", 0}};
InstructionSet detect() { return InstructionSet::kNeon; }
#else
constexpr std::array kRows = {Row{InstructionSet::kBaseline, "baseline", 0}};
InstructionSet detect() { return InstructionSet::kBaseline; }
#endif

constexpr int kUnlimited = -1;
std::atomic<int> g_limit = kUnlimited;

}  // namespace

InstructionSet best_instruction_set() {
  static const InstructionSet kBest = detect();
  return kBest;
}

InstructionSet instruction_set() {
  const int limit = g_limit.load(std::memory_order_relaxed);
  return limit == kUnlimited ? best_instruction_set() : static_cast<InstructionSet>(limit);
}

bool instruction_set_is_limited() { return g_limit.load() != kUnlimited; }

void limit_instruction_set(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name != name || row.set > best_instruction_set()) continue;
    hwy::DisableTargets(row.better_targets);
    g_limit = static_cast<int>(row.set);
    return;
  }
  throw UsageError(fmt::format("MASQUE_CPU: '{}', expected one of this processor's: {}", name,
                               fmt::join(instruction_set_names(), ", ")));
}

void limit_instruction_set_by_environment() {
  const char* name = std::getenv("MASQUE_CPU");
  if (name != nullptr && *name != '\0') limit_instruction_set(name);
}

std::string_view name_of(InstructionSet set) {
  for (const Row& row : kRows) {
    if (row.set == set) return row.name;
  }
  MASQUE_CHECK(false);
  return {};
}

std::vector<std::string> instruction_set_names() {
  std::vector<std::string> names;
  for (const Row& row : kRows) {
    if (row.set <= best_instruction_set()) names.emplace_back(row.name);
  }
  return names;
}

}  // namespace masque
