// What option parsing shares: names, and words out of a few.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace masque::cli {

/// The long one of an entry's `names`: "-o,--output" → "--output".
std::string long_name(const std::string& names);

/// How `field` is spelled on a command line: "mask_token" → "--mask-token".
std::string option_of(std::string_view field);

/// How `field` is spelled in an experiment file: "mask_token" → "mask-token".
std::string key_of(std::string_view field);

/// `message`, marked as field() does it, with its fields as options.
std::string with_options(std::string_view message);

/// `message` as stderr has it: the name `tool` and ": " in front, its fields as options, a line
/// feed after it. Of more than 2,000 bytes, which only a text from a file makes, the middle is left
/// out.
std::string message_line(const std::string& tool, std::string_view message);

/// What stands in a message for the option of these names: "-o,--output" → field("output").
std::string field_of(const std::string& names);

/// The index of `text` in `words`. Throws UsageError if it is not there; the message begins with
/// `name`, the option's, and has the words and the nearest one.
std::size_t find_word(const std::string& name, const std::vector<std::string>& words,
                      const std::string& text);

}  // namespace masque::cli
