// What an interrupted cell of a length run leaves: the state of its training.
#pragma once

#include <string>

#include "train/parameters.hpp"
#include "train/trainer.hpp"

namespace masque::train {

/// Values, both moments of the optimizer and the step as one file, whole or not at all. Throws
/// InputError.
void save_cell_state(const std::string& path, Trainer& trainer, Parameters<float>& parameters);

/// Goes on from there. Throws InputError for a file of another model.
void load_cell_state(const std::string& path, Trainer& trainer, Parameters<float>& parameters);

}  // namespace masque::train
