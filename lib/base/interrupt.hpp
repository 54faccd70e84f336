// A signal asks a long loop to stop; the loop looks here and unwinds, removing what it made.
#pragma once

namespace masque {

/// Notes SIGINT, SIGTERM and SIGHUP instead of dying at once. A second signal of the same kind
/// kills as usual. Called once, by the tool's start.
void catch_interrupts();

/// Throws Interrupted if one of them arrived. Cheap; safe from any thread.
void throw_if_interrupted();

}  // namespace masque
