// Experiment files: options of a command as lines `key = value`.
#pragma once

#include <string>
#include <vector>

namespace masque::cli {

/// The argument of a command that takes such a file as one.
constexpr const char* kFileArgument = "FILE";

/// A line of an experiment file.
struct Setting {
  std::string key;
  std::string value;
  std::string location;  ///< "FILE:3"
};

/// The lines of a file ("-": standard input) that say something: blanks around keys and values do
/// not count, and `#` at the start of a line or after a blank begins a comment; a byte-order mark
/// in front is skipped. Throws InputError "FILE:LINE: …" for a line that is no `key = value`.
std::vector<Setting> read_settings(const std::string& path);

/// Whether a value reads back unchanged from such a line.
bool is_setting_value(const std::string& text);

}  // namespace masque::cli
