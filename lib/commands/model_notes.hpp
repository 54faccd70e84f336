// What is odd about a model, for people.
#pragma once

#include <string>

#include <fmt/format.h>

#include "cli/session.hpp"
#include "model/design.hpp"

namespace masque::commands {

/// Prints the notes of `design`, that of the checkpoint `folder`, on `session`.
inline void note_model(const std::string& folder, const model::Design& design,
                       cli::Session& session) {
  session.notes(folder, design.notes);
}

}  // namespace masque::commands
