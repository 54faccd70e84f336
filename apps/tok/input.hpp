// What the commands that read text share: the tokenizer, and standard input line by line.
#pragma once

#include <string>

#include "cli/input_lines.hpp"
#include "cli/run_tool.hpp"
#include "text/tokenizer.hpp"

namespace masque::tok {

using cli::add_input;
using cli::InputLines;
using cli::InputOptions;
using cli::need_stream;

/// --flavor.
void add_flavor(cli::Command& command, text::TokenizerOptions& options);

/// Opens a tokenizer and tells what is odd about it.
text::Tokenizer open_tokenizer(const std::string& path, const text::TokenizerOptions& options,
                               cli::Session& session);

}  // namespace masque::tok
