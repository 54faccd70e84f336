// What is odd about a model, for people.
#pragma once

#include <string>

#include <fmt/format.h>

#include "cli/session.hpp"
#include "model/checkpoint/training_state.hpp"
#include "model/design.hpp"

namespace masque::commands {

/// Prints the notes of `design`, that of the checkpoint `folder`, on `session`, and one if `folder`
/// is a run that was ended before its first step.
inline void note_model(const std::string& folder, const model::Design& design,
                       cli::Session& session) {
  session.notes(folder, design.notes);
  if (const auto note = model::not_begun_note(folder)) session.notes(folder, {*note});
}

}  // namespace masque::commands
