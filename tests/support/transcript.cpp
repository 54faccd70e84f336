// Runs the commands of a transcript, or of the ```console blocks of a Markdown page, in one fresh
// folder and compares what they print. The syntax is described in tests/cli/README.md.
//   transcript_runner FILE --path BIN_DIR [--data DIR] [--update]
// With --update the file gets what was printed in place of what was wrong.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "support/table.hpp"
#include "support/temp_folder.hpp"

namespace masque::test {
namespace {

using Lines = std::vector<std::string>;

struct Command {
  std::size_t line = 0;  ///< in the file, from 1
  std::string text;
  Lines out;
  Lines err;
  int code = 0;
  bool hidden = false;  ///< a set-up command: only its exit code counts
  std::size_t end = 0;  ///< the last line of the command itself
  /// Of each line of `out`, and of all others that say what is expected.
  std::vector<std::size_t> out_lines = {}, other_lines = {};
};

struct Result {
  std::string out;
  std::string err;
  int code = 0;
};

/// Lines of the file that belong to a transcript, with their numbers; others are empty in between.
struct Line {
  std::size_t number;
  std::string text;
  bool setup = false;
};

constexpr std::string_view kSetup = "<!-- transcript: ";

std::vector<std::vector<Line>> blocks_of(const std::string& path) {
  const Lines lines = split(read_file(path), '\n');
  const bool markdown = path.ends_with(".md");
  std::vector<std::vector<Line>> blocks(1);
  bool inside = !markdown;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string& text = lines[i];
    if (markdown && !inside && text.starts_with(kSetup) && text.ends_with(" -->")) {
      blocks.push_back(
          {{i + 1, text.substr(kSetup.size(), text.size() - kSetup.size() - 4), true}});
    } else if (markdown && text.starts_with("```")) {
      inside = !inside && text == "```console";
      blocks.emplace_back();
    } else if (inside) {
      blocks.back().push_back({i + 1, text});
    }
  }
  return blocks;
}

/// Removes what separates commands: empty lines at the end, and comments after an empty line.
void drop_separators(Lines& lines) {
  while (true) {
    std::size_t end = lines.size();
    while (end > 0 && lines[end - 1].starts_with("#")) --end;
    if (end == 0 || !lines[end - 1].empty()) return;
    lines.resize(end - 1);
  }
}

std::vector<Command> commands_of(const std::string& path) {
  std::vector<Command> commands;
  for (const std::vector<Line>& block : blocks_of(path)) {
    bool open = false;       // a command of this block came before
    bool continues = false;  // the line before was of the command itself
    for (const Line& line : block) {
      const std::string rest = line.text.substr(std::min<std::size_t>(2, line.text.size()));
      if (line.setup || line.text.starts_with("$ ")) {
        commands.push_back(
            {line.number, line.setup ? line.text : rest, {}, {}, 0, line.setup, line.number});
        open = continues = true;
        continue;
      }
      if (!open) continue;  // comments before the first command
      Command& command = commands.back();
      if (continues && line.text.starts_with("> ")) {
        command.text += "\n" + rest;
        command.end = line.number;
        continue;
      }
      continues = false;
      if (line.text == "!" || line.text.starts_with("! ")) {
        command.err.push_back(rest);
        command.other_lines.push_back(line.number);
      } else if (line.text.starts_with("? ")) {
        command.code = std::stoi(rest);
        command.other_lines.push_back(line.number);
      } else {
        command.out.push_back(line.text);
        command.out_lines.push_back(line.number);
      }
    }
  }
  for (Command& command : commands) {
    drop_separators(command.out);
    command.out_lines.resize(command.out.size());
  }
  return commands;
}

Lines output_lines(const std::string& text) {
  Lines lines = split(text, '\n');
  if (lines.back().empty()) {
    lines.pop_back();
  } else {
    lines.emplace_back("\\ no end of line");
  }
  return lines;
}

/// True if the lines are the expected ones, where "..." stands for any number of lines.
bool matches(const Lines& expected, const Lines& found, std::size_t e = 0, std::size_t f = 0) {
  for (; e < expected.size() && expected[e] != "..."; ++e, ++f) {
    if (f == found.size() || expected[e] != found[f]) return false;
  }
  if (e == expected.size()) return f == found.size();
  for (std::size_t rest = f; rest <= found.size(); ++rest) {
    if (matches(expected, found, e + 1, rest)) return true;
  }
  return false;
}

/// What differs, without the equal lines at both ends.
std::string difference(const char* stream, const Lines& expected, const Lines& found) {
  std::size_t head = 0;
  while (head < expected.size() && head < found.size() && expected[head] == found[head]) ++head;
  std::size_t tail = 0;
  while (tail + head < expected.size() && tail + head < found.size() &&
         expected[expected.size() - 1 - tail] == found[found.size() - 1 - tail]) {
    ++tail;
  }
  std::string out = fmt::format("  {} differs from line {}:\n", stream, head + 1);
  for (std::size_t i = head; i + tail < expected.size(); ++i) {
    out += "  - " + expected[i] + "\n";
  }
  for (std::size_t i = head; i + tail < found.size(); ++i) out += "  + " + found[i] + "\n";
  return out;
}

/// What is wrong with a result; empty if nothing is.
std::string fault(const Command& command, const Result& result) {
  std::string out;
  if (result.code != command.code) {
    out += fmt::format("  exit code {}, expected {}\n", result.code, command.code);
  }
  if (command.hidden) return out.empty() ? out : out + result.err;
  const Lines found_out = output_lines(result.out);
  const Lines found_err = output_lines(result.err);
  if (!matches(command.out, found_out)) out += difference("stdout", command.out, found_out);
  if (!matches(command.err, found_err)) out += difference("stderr", command.err, found_err);
  return out;
}

/// Puts what was printed in the place of what `command` expects. Lines after it move.
void update(const Command& command, const Result& result, Lines& file) {
  std::size_t end = command.end;
  for (const std::size_t line : command.out_lines) end = std::max(end, line);
  for (const std::size_t line : command.other_lines) end = std::max(end, line);
  Lines printed =
      matches(command.out, output_lines(result.out)) ? command.out : output_lines(result.out);
  const Lines err =
      matches(command.err, output_lines(result.err)) ? command.err : output_lines(result.err);
  for (const std::string& line : err) printed.push_back(line.empty() ? "!" : "! " + line);
  for (const std::string& line : printed) {
    if (line.starts_with("$ ") || line.starts_with("? ") || line.starts_with("> ") ||
        line.starts_with("```")) {
      throw std::runtime_error(
          fmt::format("line {}: prints '{}', which cannot be expected", command.line, line));
    }
  }
  if (result.code != 0) printed.push_back(fmt::format("? {}", result.code));
  const auto at = [&](std::size_t line) {
    return file.begin() + static_cast<std::ptrdiff_t>(line);
  };
  file.erase(at(command.end), at(end));
  file.insert(at(command.end), printed.begin(), printed.end());
}

void write_file(const std::string& path, const Lines& lines) {
  std::ofstream out(path, std::ios::binary);
  for (std::size_t i = 0; i < lines.size(); ++i) out << (i == 0 ? "" : "\n") << lines[i];
  if (!out.flush()) throw std::runtime_error(path + ": cannot be written");
}

/// A descriptor of an unnamed file: what a command writes there never shows in its folder.
int unnamed_file() {
  char name[] = "/tmp/transcript-XXXXXX";
  const int fd = ::mkostemp(name, O_CLOEXEC);
  if (fd < 0) throw std::runtime_error(std::string("mkostemp: ") + std::strerror(errno));
  ::unlink(name);
  return fd;
}

std::string take(int fd) {
  std::string text;
  char buffer[1 << 16];
  ::lseek(fd, 0, SEEK_SET);
  for (ssize_t n = 0; (n = ::read(fd, buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(n));
  }
  ::close(fd);
  return text;
}

Result run(const std::string& text, const std::string& folder) {
  const int out = unnamed_file();
  const int err = unnamed_file();
  const pid_t pid = ::fork();
  if (pid < 0) throw std::runtime_error("fork");
  if (pid == 0) {
    ::signal(SIGPIPE, SIG_DFL);
    if (::chdir(folder.c_str()) != 0) ::_exit(126);
    ::dup2(::open("/dev/null", O_RDONLY), 0);
    ::dup2(out, 1);
    ::dup2(err, 2);
    ::execl("/bin/sh", "sh", "-c", text.c_str(), nullptr);
    ::_exit(126);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return {take(out), take(err), WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)};
}

void set_environment(const std::string& bin, const std::string& data) {
  const char* path = ::getenv("PATH");
  ::setenv("PATH", (bin + ":" + (path == nullptr ? "/usr/bin:/bin" : path)).c_str(), 1);
  ::setenv("LC_ALL", "C.UTF-8", 1);
  ::setenv("MASQUE_DATA", data.c_str(), 1);
  ::unsetenv("NO_COLOR");
}

int main_of(const Lines& arguments) {
  std::string file;
  std::string bin;
  std::string data;
  bool updates = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool more = i + 1 < arguments.size();
    if (arguments[i] == "--path" && more) {
      bin = std::filesystem::absolute(arguments[++i]);
    } else if (arguments[i] == "--data" && more) {
      data = std::filesystem::absolute(arguments[++i]);
    } else if (arguments[i] == "--update") {
      updates = true;
    } else {
      file = arguments[i];
    }
  }
  if (file.empty() || bin.empty()) {
    fmt::print(stderr, "usage: transcript_runner FILE --path BIN_DIR [--data DIR] [--update]\n");
    return 2;
  }
  const std::vector<Command> commands = commands_of(file);
  set_environment(bin, data);
  const TempFolder folder;
  std::size_t shown = 0;
  int wrong = 0;
  std::vector<std::pair<const Command*, Result>> changed;
  for (const Command& command : commands) {
    shown += command.hidden ? 0 : 1;
    Result result = run(command.text, folder.path());
    const std::string found = fault(command, result);
    if (found.empty()) continue;
    fmt::print("{}:{}: {}\n{}", file, command.line, command.text, found);
    ++wrong;
    if (updates && !command.hidden) changed.emplace_back(&command, std::move(result));
  }
  if (!changed.empty()) {
    Lines lines = split(read_file(file), '\n');
    // From the end: a change moves what comes after it.
    std::ranges::reverse(changed);
    for (const auto& [command, result] : changed) update(*command, result, lines);
    write_file(file, lines);
  }
  if (shown == 0) {
    fmt::print("{}: no command\n", file);
    return 1;
  }
  fmt::print("{}: {} commands, {} wrong\n", file, shown, wrong);
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace masque::test

int main(int argc, char** argv) {
  try {
    return masque::test::main_of({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "transcript_runner: {}\n", error.what());
    return 2;
  }
}
