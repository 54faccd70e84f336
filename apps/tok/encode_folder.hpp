// Standard input as a token folder.
#pragma once

#include "encode_options.hpp"

namespace masque::tok {

/// Writes the ids of standard input's lines as the token folder of `options`, with `tokenizer`.
/// After an interruption, a run with --resume goes on after the lines that were saved. Throws
/// InputError, also if these lines are not what they were.
cli::ExitCode encode_to_folder(const EncodeCommand& options, const text::Tokenizer& tokenizer,
                               cli::Session& session);

}  // namespace masque::tok
