// How fast this machine multiplies matrices now: the measure of a training run.
#pragma once

#include "kernel/precision.hpp"

namespace masque::kernel {

/// Operations a second (two for each multiply-add) of a TrainedLinear product in `precision`,
/// kF32 or kBf16, of matrices of 1,024 by 1,024, on the threads in use: the best one of a tenth
/// of a second. Takes that long.
double measure_product(Precision precision);

}  // namespace masque::kernel
