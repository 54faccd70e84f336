// Which instructions of the processor the loops of kernels use.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace masque {

/// Instruction sets that loops are compiled for, weakest first. Each includes those before it.
enum class InstructionSet {
  kBaseline,    ///< what the compiler may assume: SSE2 on x86-64
  kSse4,        ///< SSE4.2
  kNeon,        ///< 64-bit ARM
  kAvx2,        ///< with FMA and F16C
  kAvx512,      ///< F, BW, DQ and VL
  kAvx512Bf16,  ///< products of pairs of bfloat16
  kAmx,         ///< tiles of bfloat16, used by oneDNN alone
};

/// The best set that this processor and its system offer. Constant; thread-safe.
InstructionSet best_instruction_set();

/// The set in use: the best one, or the one given to limit_instruction_set. Thread-safe.
InstructionSet instruction_set();

/// Whether limit_instruction_set has been called.
bool instruction_set_is_limited();

/// Uses the set `name`, one of instruction_set_names(): "sse2", "sse4", "neon", "avx2", "avx512",
/// "avx512_bf16" or "amx". Before any kernel runs. Throws UsageError, naming those to choose from,
/// where this processor lacks it.
void limit_instruction_set(std::string_view name);

/// Applies the environment variable MASQUE_CPU, if it is set and not empty. Called by the start of
/// a program, not by libraries. Throws as limit_instruction_set.
void limit_instruction_set_by_environment();

/// The name of `set`, as limit_instruction_set takes it. A MASQUE_CHECK: `set` is one of this
/// architecture.
std::string_view name_of(InstructionSet set);

/// Names of the sets that this processor offers, weakest first.
std::vector<std::string> instruction_set_names();

}  // namespace masque
