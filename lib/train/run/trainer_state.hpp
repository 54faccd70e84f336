// What an interrupted training leaves, as a checkpoint of its own: values, optimizer, step.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "store/checkpoint.hpp"
#include "store/checkpoint_writer.hpp"
#include "train/network/parameters.hpp"
#include "train/run/trainer.hpp"

namespace masque::train {

/// For each parameter the tensor `value.NAME` and, if it is trained, `first.NAME` and `second.NAME`
/// (the optimizer's moments), as (rows, columns), and `updates.NAME`, one whole number; and
/// `masque.step`. Borrows their memory: write it before the next step.
store::OutputWeights trainer_state(Trainer& trainer, Parameters<float>& parameters);

/// Sets values, moments and step as they were. Throws InputError, which begins with `path`, for the
/// state of another model, and for a state without values.
void read_trainer_state(const store::Checkpoint& state, const std::string& path, Trainer& trainer,
                        Parameters<float>& parameters);

/// What read_moments has taken.
struct TakenMoments {
  Index parameters = 0;
  std::int64_t updates = 0;          ///< the most that one of them has had
  std::vector<std::string> missing;  ///< trained parameters that start without moments
};

/// Sets the moments of a new run as another one, or ckpt-grow, has left them. What is not there in
/// the parameter's shape, or what `takes` is false for, starts at 0, as new. Throws InputError,
/// which begins with `path`, if nothing is there, and for moments that are not finite or second
/// ones below 0.
TakenMoments read_moments(const store::Checkpoint& state, const std::string& path,
                          const std::function<bool(const std::string& name)>& takes,
                          Trainer& trainer, Parameters<float>& parameters);

/// What a state says under `masque.NAME`; nullptr if nothing. Lives as long as the checkpoint.
const std::string* state_fact(const store::Checkpoint& state, std::string_view name);

}  // namespace masque::train
