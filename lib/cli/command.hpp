// Declaring a command line once; parsing, help and suggestions follow from it.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/string/name_table.hpp"
#include "cli/experiment.hpp"

namespace masque::cli {

/// Exit codes, the same in all tools. A signal ends with 128 + its number (SIGINT 130, a closed
/// pipe 141).
enum class ExitCode {
  kDone = 0,      ///< done
  kFound = 1,     ///< done, and the answer is "no": a difference, a broken rule
  kUsage = 2,     ///< the command line is wrong
  kInput = 3,     ///< input or I/O error
  kInternal = 4,  ///< a bug of ours
};

class Session;

/// Whether a command can do without an option.
enum class Need {
  kOptional,  ///< the target keeps its initial value
  kRequired   ///< parse() throws UsageError if it is missing
};

/// How a command takes an experiment file: not; as --experiment FILE; or as its argument, too.
enum class ExperimentFile { kNone, kOption, kArgument };

/// Allowed values of a number, both ends included.
struct AllowedRange {
  double low;   ///< least allowed value
  double high;  ///< greatest allowed value; infinity: no upper limit
};

/// Throws UsageError "--x has no effect BECAUSE; remove it" about `option`, a long name without
/// dashes, with this `because`.
[[noreturn]] void refuse_unread(std::string_view option, std::string_view because);

/// An option or a positional argument, as declared.
struct Entry {
  std::string names;               ///< "-o,--output", or the positional's name
  std::string value;               ///< names what follows the option; empty: a flag, or positional
  std::string help;                ///< one sentence
  std::string initial;             ///< the default, if it is worth showing
  std::vector<std::string> words;  ///< all values that there are; empty: others, too
  bool positional = false;         ///< an argument, found by its place
  bool repeated = false;           ///< takes several values, each of which `set` receives
  bool required = false;           ///< parse() throws UsageError without it
  /// Stores a value, given as text, in the target. Throws UsageError for text that is no value.
  std::function<void(const std::string&)> set;

  /// Whether it is an option without a value.
  bool is_flag() const { return value.empty() && !positional; }
  /// The parts of `names`: "-o" and "--output"; of an argument its name.
  std::vector<std::string> spellings() const;
};

/// What stands for `entry` in an experiment file: "-o,--output" → "output", the argument "TEXT" →
/// "text".
std::string key_of(const Entry& entry);

/// A tool or one of its sub-commands. Targets must outlive parsing; the usual way is an options
/// struct in a shared_ptr that the action holds. Functions that declare return this
/// object; subcommand() returns the new one.
class Command {
 public:
  /// `name` is the word that a user types; `summary` is one line for --help and the manual page.
  explicit Command(std::string name, std::string summary);
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  ~Command();

  /// A sub-command, chosen by its `name` as the first word; `summary` is its line in the list of
  /// commands. A command with an action of its own takes other words as its arguments. The
  /// reference stays valid as long as this object.
  Command& subcommand(std::string name, std::string summary);

  /// An example, shown first in --help: `command_line`, and `what` it does. The message about a
  /// missing argument shows the first one, too.
  Command& example(std::string command_line, std::string what);

  /// A positional argument. `name` is in upper case; `target` receives the text; `help` is one
  /// sentence. With kRequired as `need`, parse() throws UsageError without the argument.
  Command& argument(std::string name, std::string& target, std::string help,
                    Need need = Need::kRequired);
  /// One or more positional arguments `name`, appended to `target`; with kOptional as `need`, none
  /// or more. `help` is one sentence.
  Command& arguments(std::string name, std::vector<std::string>& target, std::string help,
                     Need need = Need::kRequired);

  /// An option with a value. `names` is "--name" or "-n,--name"; `value` names what follows it;
  /// `help` is one sentence. The initial value of `target` is the default and is shown. With
  /// kRequired as `need`, parse() throws UsageError without the option. The last of several values
  /// counts.
  Command& option(std::string names, std::string value, std::string& target, std::string help,
                  Need need = Need::kOptional);
  /// The same without a default: `target` stays as it is without the option. `names`, `value` and
  /// `help` as above.
  Command& option(std::string names, std::string value, std::optional<std::string>& target,
                  std::string help);
  /// A number in `range`; parse() throws UsageError for other text. The initial `target` is shown
  /// as the default. `names`, `value` and `help` as above.
  Command& option(std::string names, std::string value, double& target, AllowedRange range,
                  std::string help);
  /// A number in `range`, without a default for `target`. `names`, `value` and `help` as above.
  Command& option(std::string names, std::string value, std::optional<double>& target,
                  AllowedRange range, std::string help);
  /// A whole number in `range`; parse() throws UsageError for other text. The initial `target` is
  /// shown as the default unless it is 0. `names`, `value` and `help` as above.
  Command& option(std::string names, std::string value, int& target, AllowedRange range,
                  std::string help);
  /// The same as for an int `target`; `range` is exact up to 2^53. `names`, `value` and `help` as
  /// above.
  Command& option(std::string names, std::string value, std::int64_t& target, AllowedRange range,
                  std::string help);
  /// A whole number in `range`, without a default for `target`. `names`, `value` and `help` as
  /// above.
  Command& option(std::string names, std::string value, std::optional<std::int64_t>& target,
                  AllowedRange range, std::string help);
  /// A whole number from 0 to 2^64 − 1. The initial `target` is shown as the default, 0 too.
  /// `names`, `value` and `help` as above.
  Command& option(std::string names, std::string value, std::uint64_t& target, std::string help);
  /// A whole number from 0 to 2^64 − 1, without a default for `target`. `names`, `value` and `help`
  /// as above.
  Command& option(std::string names, std::string value, std::optional<std::uint64_t>& target,
                  std::string help);
  /// An option that may be given several times: each value is appended to `target`. `names`,
  /// `value` and `help` as above.
  Command& option(std::string names, std::string value, std::vector<std::string>& target,
                  std::string help);

  /// An option that may be given several times: `take` receives each value, and throws UsageError
  /// for text that is none. `names`, `value` and `help` as above.
  Command& option(std::string names, std::string value,
                  std::function<void(const std::string&)> take, std::string help);

  /// An option whose value is one of `words`: `target` becomes the word's value. `names` and `help`
  /// are as above; the word of the initial `target` is shown as the default. parse() throws
  /// UsageError for another word.
  template <class T>
  Command& choice(const std::string& names, T& target,
                  std::initializer_list<std::pair<const char*, T>> words, const std::string& help) {
    std::vector<std::string> spellings;
    std::vector<T> values;
    std::string initial;
    for (const auto& [word, value] : words) {
      spellings.emplace_back(word);
      values.push_back(value);
      if (value == target) initial = word;
    }
    return choose(
        names, std::move(spellings), initial,
        [&target, values](std::size_t i) { target = values[i]; }, help);
  }

  /// The same with the `words` of a table, which must outlive parsing; `target` is a T or a
  /// std::optional of it. `names` and `help` are as above.
  template <class Target, class T>
  Command& choice(const std::string& names, Target& target, NameTable<T> words,
                  const std::string& help) {
    std::vector<std::string> spellings;
    std::string initial;
    for (const auto& [word, value] : words) {
      spellings.emplace_back(word);
      if (target == value) initial = word;
    }
    return choose(
        names, std::move(spellings), initial,
        [&target, words](std::size_t i) { target = words[i].second; }, help);
  }

  /// An option without a value: `names` is "--name" or "-n,--name", `target` becomes `value`,
  /// `help` is one sentence.
  Command& flag(std::string names, bool& target, std::string help, bool value = true);

  /// Options may come from an experiment file, too, as `how` says; those of the command line
  /// replace the file's. Also declares --print-experiment. With kArgument the command has no other
  /// arguments.
  Command& experiment(ExperimentFile how);
  /// `names` are long names ("--name") of options of which the command takes one: each of them on
  /// the command line replaces the others in an experiment file, too.
  Command& one_of(std::vector<std::string> names);

  /// `options`, by their long names without dashes, are read only if `holds` returns true:
  /// otherwise run() throws UsageError "--x has no effect BECAUSE; remove it", with this `because`,
  /// for the first of them that is requested (is_requested).
  Command& read_only_if(std::vector<std::string> options, std::function<bool()> holds,
                        std::string because);

  /// `options`, by their long names without dashes, name files that the command writes; so do their
  /// values with each of `suffixes`. parse() throws UsageError if one of these files is an input or
  /// another output: what standard input, an argument or another option names (as FILE, KIND:FILE
  /// or KIND(FILE)), or a file of the model or tokenizer in a folder that one of them names.
  Command& writes(std::vector<std::string> options, std::vector<std::string> suffixes = {});

  /// The command changes what its argument `name` names; with a `flag`, "--in-place", only where
  /// that is given. Then parse() throws UsageError for a model of the Hugging Face cache.
  Command& changes(std::string name, std::string flag = "");

  /// `other` is what other commands call the option `here` of this one: the message about it as an
  /// unknown option names `here`.
  Command& elsewhere(std::string other, std::string here);
  /// It reads standard input: the message about an argument too many says so.
  Command& reads_standard_input();

  /// A further `line` of --version, requested when it is printed: a library of which the tool takes
  /// what the system has.
  Command& version_line(std::function<std::string()> line);

  /// What the command does once parsed: `run` returns the exit code. What it throws
  /// becomes the tool's message and exit code: run_tool.
  Command& action(std::function<ExitCode(Session&)> run);

  /// Parses `arguments`, those after the program's name, and sets the targets. Throws UsageError;
  /// CLI::ParseError for an option without its value; InputError "FILE:LINE: …" for what is wrong
  /// in an experiment file. Returns the command to run (this one or a sub-command, owned by this
  /// object), or nullptr if help, the version, the manual page, a completion script or an
  /// experiment file was requested; what is to be printed is then in `text`. May be called once:
  /// repeated options append to their targets.
  const Command* parse(const std::vector<std::string>& arguments, std::string& text);

  /// Runs the action with `session`; parse() must have returned this command. A UsageError about an
  /// option that came from an experiment file becomes an InputError with the file's line.
  ExitCode run(Session& session) const;

  /// The arguments as they were parsed, without the tool's and sub-command's names.
  const std::vector<std::string>& given() const { return given_; }

  /// What the command line and the experiment file say, in the order of the declarations, but for
  /// the file itself: keys and values as such a file has them, no location. Only of a command that
  /// takes an experiment file.
  const std::vector<Setting>& settings() const { return settings_; }

  /// Whether `option`, called by its long name without dashes, was set: on the command line or by
  /// an experiment file.
  bool is_set(std::string_view option) const;

  /// As is_set, but false for an `option` to which an experiment file gives the value of its
  /// default: such a file may hold all options.
  bool is_requested(std::string_view option) const;

  /// The word that chooses it, without the names of the commands above it.
  const std::string& name() const { return name_; }
  /// The name with those of the commands above it: "embed-fix mlm-correct".
  std::string full_name() const;
  /// The text of --help.
  std::string help() const;

  /// The line about the command in --help and the manual page.
  const std::string& summary() const { return summary_; }
  /// Command lines and what they do.
  const std::vector<std::pair<std::string, std::string>>& examples() const { return examples_; }
  /// The declared options and arguments, then those that every command has, in the order of --help.
  /// Copies.
  std::vector<Entry> entries() const;
  /// The sub-commands, in the order of their declaration.
  const std::vector<std::unique_ptr<Command>>& subcommands() const { return subcommands_; }
  /// Whether it runs by itself, not by its sub-commands alone.
  bool acts() const { return static_cast<bool>(action_); }

 private:
  Command& add(Entry entry);
  Command& number(std::string names, std::string value, std::string help, std::string initial,
                  std::function<void(const std::string&)> set);
  Command& choose(const std::string& names, std::vector<std::string> words, std::string initial,
                  std::function<void(std::size_t)> set, const std::string& help);
  /// The values that the command line gives to an option or argument, by one of its spellings.
  using Typed = std::function<std::vector<std::string>(const std::string& name)>;
  /// Sets what an experiment file says and the command line does not. Throws InputError.
  void read_experiment(const Typed& typed);
  void set_from_file(const Setting& setting, const Entry& entry, const Typed& typed);
  /// Whether `entry` is an output: one of writes(), or of this name.
  bool is_output(const Entry& entry) const;
  /// `value` as `entry` reads it: the folder of a model that hf:OWNER/NAME names in the Hugging
  /// Face cache, where a model may stand. Throws as hub_snapshot, and UsageError for an output.
  std::string as_read(const Entry& entry, const std::string& value) const;
  /// What the command line or the file gives to `entry`; "true" for a flag.
  std::vector<std::string> given_values(const Entry& entry, const Typed& typed) const;
  /// All options with their values, as an experiment file.
  std::string experiment_text(const Typed& typed) const;
  /// The text that --help, --version, --man or --completion SHELL asks for; empty: none of them
  /// does.
  std::string builtin_text(const std::function<bool(const char*)>& given, const Typed& typed) const;
  using GivenValue = std::pair<const Entry*, std::string>;
  /// Throws UsageError for an output that is an input, too: see writes(). `more` are further values
  /// of the repeated argument, if there is one, which `typed` does not give.
  void refuse_overwriting(const Typed& typed, const std::vector<std::string>& more) const;
  /// The same for the output `path` of `entry`, among all values that are `given`.
  void refuse_overwriting(const Entry& entry, const std::string& path,
                          const std::vector<GivenValue>& given) const;
  /// Throws UsageError for an option that is requested and not read.
  void refuse_unread() const;
  /// Throws UsageError for what CLI11 left over, unless it is a repeated argument's.
  void refuse_extras(const std::vector<std::string>& extras) const;
  /// The sub-command of this name; nullptr for an option. Throws UsageError for an unknown name.
  Command* find_subcommand(const std::string& word) const;

  std::string name_;
  std::string summary_;
  const Command* parent_ = nullptr;
  std::vector<std::pair<std::string, std::string>> examples_;
  std::vector<Entry> entries_;
  std::vector<std::unique_ptr<Command>> subcommands_;
  std::function<ExitCode(Session&)> action_;
  std::vector<std::function<std::string()>> version_lines_;
  std::vector<std::vector<std::string>> one_of_;
  /// See read_only_if.
  struct Condition {
    std::vector<std::string> options;
    std::function<bool()> holds;
    std::string because;
  };
  std::vector<Condition> conditions_;
  /// See writes.
  struct Written {
    std::string option;
    std::vector<std::string> suffixes;
  };
  std::vector<Written> writes_;
  /// An argument that the command changes, and the flag with which it does; empty: always.
  struct Changed {
    std::string name;
    std::string flag;
  };
  std::vector<Changed> changes_;
  using Elsewhere = std::pair<std::string, std::string>;
  std::vector<Elsewhere> elsewhere_;
  bool reads_standard_input_ = false;
  ExperimentFile experiment_ = ExperimentFile::kNone;
  std::vector<Setting> from_file_;  ///< in effect
  std::vector<std::string> given_;
  std::vector<Setting> settings_;
  std::vector<std::string> set_;  ///< keys of the entries that were
};

}  // namespace masque::cli
