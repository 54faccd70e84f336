// What an interrupted training leaves, as a checkpoint of its own: values, optimizer, step.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file/scratch_file.hpp"
#include "store/checkpoint.hpp"
#include "store/checkpoint_writer.hpp"
#include "train/network/parameters.hpp"
#include "train/run/trainer.hpp"

namespace masque::train {

/// Gathers the moments of a trainer that shards() them, for trainer_state(): all ranks call it
/// together, between two steps. Returns a file without a name beside `folder`, an output, which has
/// all first moments in the order of the gradients' memory, then all second ones; on other ranks
/// than the first nothing. Throws InputError, and as Ranks::finish.
std::optional<ScratchFile> gather_moments(Trainer& trainer, const std::string& folder);

/// Returns the state of `trainer` as tensors: for each of `parameters` `value.NAME` and, if it is
/// trained, `first.NAME` and `second.NAME` (the optimizer's moments), float32 `[rows, columns]`,
/// and `updates.NAME`, one whole number (int64); and the metadata `masque.step`. Borrows their
/// memory: write it before the next step. With a trainer that shards() the `moments` are those of
/// gather_moments(), which must stay as long; else nullptr.
store::OutputWeights trainer_state(Trainer& trainer, Parameters<float>& parameters,
                                   const ScratchFile* moments = nullptr);

/// Sets the values of `parameters` and the moments and step of `trainer` as they were in `state`.
/// Throws InputError, which begins with `path`, for the state of another model, and for a state
/// without values; some values may have changed then.
void read_trainer_state(const store::Checkpoint& state, const std::string& path, Trainer& trainer,
                        Parameters<float>& parameters);

/// What read_moments has taken.
struct TakenMoments {
  Index parameters = 0;              ///< number of parameters that got moments
  std::int64_t updates = 0;          ///< the most that one of them has had
  std::vector<std::string> missing;  ///< trained parameters that start without moments
};

/// Sets the moments of `trainer`, of a new run of `parameters`, as another run, or ckpt-grow, has
/// left them in `state`. What is not there in the parameter's shape, or what `takes` is false for
/// (by Parameter::name), starts at 0, as new. Throws InputError, which begins with `path`, if
/// nothing is there, for moments that are not finite or second ones below 0, and where `state` has
/// values that are not those of `parameters`: they were changed since, by more than rounding.
TakenMoments read_moments(const store::Checkpoint& state, const std::string& path,
                          const std::function<bool(const std::string& name)>& takes,
                          Trainer& trainer, Parameters<float>& parameters);

/// Returns what `state` says in its metadata under "masque." and `name`; nullptr if nothing. Lives
/// as long as the checkpoint.
const std::string* state_fact(const store::Checkpoint& state, std::string_view name);

}  // namespace masque::train
