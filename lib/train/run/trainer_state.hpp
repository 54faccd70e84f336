// What an interrupted training leaves, as a checkpoint of its own: values, optimizer, step.
#pragma once

#include <string>
#include <string_view>

#include "store/checkpoint.hpp"
#include "store/checkpoint_writer.hpp"
#include "train/network/parameters.hpp"
#include "train/run/trainer.hpp"

namespace masque::train {

/// The tensors `first`, `second` (the optimizer's moments) and `values`, each in one row, and
/// `masque.step`. Borrows their memory: write it before the next step.
store::OutputWeights trainer_state(Trainer& trainer, Parameters<float>& parameters);

/// Sets values, moments and step as they were. Throws InputError, which begins with `path`, for the
/// state of another model.
void read_trainer_state(const store::Checkpoint& state, const std::string& path, Trainer& trainer,
                        Parameters<float>& parameters);

/// What a state says under `masque.NAME`; nullptr if nothing. Lives as long as the checkpoint.
const std::string* state_fact(const store::Checkpoint& state, std::string_view name);

}  // namespace masque::train
