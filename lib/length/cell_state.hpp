// What an interrupted cell of a length run leaves: the state of its training.
#pragma once

#include <string>

#include "train/network/parameters.hpp"
#include "train/run/trainer.hpp"

namespace masque::length {

/// Values, both moments of the optimizer and the step as one file, whole or not at all. Throws
/// InputError.
void save_cell_state(const std::string& path, train::Trainer& trainer,
                     train::Parameters<float>& parameters);

/// Goes on from there. Throws InputError for a file of another model.
void load_cell_state(const std::string& path, train::Trainer& trainer,
                     train::Parameters<float>& parameters);

}  // namespace masque::length
