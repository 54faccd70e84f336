// What option parsing shares: names, and words out of a few.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace masque::cli {

/// "-o,--output" → "--output".
std::string long_name(const std::string& names);

/// How a field is spelled on a command line: "mask_token" → "--mask-token".
std::string option_of(std::string_view field);

/// How it is spelled in an experiment file: "mask_token" → "mask-token".
std::string key_of(std::string_view field);

/// A message with its fields as options.
std::string with_options(std::string_view message);

/// A message as stderr has it: "TOOL: " in front, its fields as options, a line feed after it. Of
/// more than 2,000 bytes, which only a text from a file makes, the middle is left out.
std::string message_line(const std::string& tool, std::string_view message);

/// What stands in a message for the option of these names: "-o,--output" → field("output").
std::string field_of(const std::string& names);

/// The index of a word. Throws UsageError if it is none.
std::size_t find_word(const std::string& name, const std::vector<std::string>& words,
                      const std::string& text);

}  // namespace masque::cli
