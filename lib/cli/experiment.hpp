// Experiment files: options of a command as lines `key = value`.
#pragma once

#include <string>
#include <vector>

namespace masque::cli {

/// The argument of a command that takes such a file as one.
constexpr const char* kFileArgument = "FILE";

/// A line of an experiment file.
struct Setting {
  std::string key;       ///< what stands before the first "="
  std::string value;     ///< what follows it, never empty
  std::string location;  ///< "FILE:3"
};

/// The lines of the file at `path` ("-": standard input) that say something: blanks around keys and
/// values do not count, and `#` at the start of a line or after a blank begins a comment; a
/// byte-order mark in front is skipped. Throws InputError "FILE:LINE: …" for a line that is no
/// `key = value`, as a section or a key without a value; InputError for a file that cannot be read
/// or has more than 1 MiB. Keys are not checked, and may repeat.
std::vector<Setting> read_settings(const std::string& path);

/// Whether `text` reads back unchanged as the value of such a line.
bool is_setting_value(const std::string& text);

}  // namespace masque::cli
