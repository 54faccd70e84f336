#include "cli/run_tool.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <exception>
#include <initializer_list>
#include <new>
#include <system_error>

#include <CLI/Error.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/processor/processor.hpp"
#include "base/thread/interrupt.hpp"
#include "cli/option_values.hpp"

namespace masque::cli {

namespace {

/// Gives descriptors 0 to 2 something to point at, so that no file of ours becomes one of them.
/// True if stdout was closed. A closed stdin stays an error for those who read it (EBADF), as it
/// cannot be distinguished from an empty one otherwise.
bool open_missing_streams() {
  bool stdout_closed = false;
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    if (fd == STDOUT_FILENO) stdout_closed = true;
    const int opened = ::open("/dev/null", O_WRONLY);
    if (opened >= 0 && opened != fd) ::close(opened);
  }
  return stdout_closed;
}

/// A limit on file sizes becomes an error of write, and as many files as the system allows may be
/// open.
void prepare_limits() {
  ::signal(SIGXFSZ, SIG_IGN);
  struct rlimit files = {};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &files) != 0) return;  // then the old limit stays
}

/// CLI11's words for an option without its value, in ours.
std::string parse_message(const CLI::ParseError& error) {
  std::string text = error.what();
  if (error.get_name() != "ArgumentMismatch") return text;
  return fmt::format("{}: no value, expected one", text.substr(0, text.find(':')));
}

int code(ExitCode exit) { return static_cast<int>(exit); }

void write_stderr(std::string_view line) {
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return;  // nowhere left to say it
}

/// In one write, and without memory; a long text loses its end.
void say_without_memory(std::initializer_list<std::string_view> parts) {
  std::array<char, 2000> line;
  std::size_t size = 0;
  for (const std::string_view part : parts)
    size += part.copy(line.data() + size, line.size() - 1 - size);
  line[size++] = '\n';
  write_stderr({line.data(), size});
}

/// Takes the progress away, whatever ends the run.
struct ProgressEnd {
  Session& session;
  ~ProgressEnd() { session.clear_progress(); }
};

/// The tool. What passes is a lack of memory, also in one of the handlers here, or a bug of ours.
int run(std::string_view name, std::string_view summary, int argc, char** argv,
        const std::function<void(Command&)>& declare) {
  const bool stdout_closed = open_missing_streams();
  catch_interrupts();
  prepare_limits();
  Session session(std::string(name), stdout_closed);
  const ProgressEnd progress_end{session};
  const auto end = [&](std::string_view text, ExitCode exit) {
    session.clear_progress();
    session.print_end();
    write_stderr(message_line(std::string(name), text));
    return code(exit);
  };
  int result = code(ExitCode::kDone);
  std::string text;
  try {
    limit_instruction_set_by_environment();
    Command tool{std::string(name), std::string(summary)};
    declare(tool);
    const Command* command =
        tool.parse(std::vector<std::string>(argv + std::min(argc, 1), argv + argc), text);
    if (command == nullptr) {
      session.print(text);
    } else {
      result = code(command->run(session));
    }
    session.print_end();
    session.clear_progress();
    session.flush();
  } catch (const CLI::ParseError& error) {
    result = end(escape(parse_message(error)), ExitCode::kUsage);
  } catch (const UsageError& error) {
    result = end(error.message(), ExitCode::kUsage);
  } catch (const InputError& error) {
    session.clear_progress();
    session.flush_quietly();
    result = end(error.message(), ExitCode::kInput);
  } catch (const Interrupted& interrupted) {
    result = end("interrupted; " + session.if_interrupted(), ExitCode::kInternal);
    ::signal(interrupted.signal(), SIG_DFL);
    ::raise(interrupted.signal());
  } catch (const std::system_error& error) {
    result = end(error.what(), ExitCode::kInput);
  }
  return result;
}

}  // namespace

int run_tool(std::string_view name, std::string_view summary, int argc, char** argv,
             const std::function<void(Command&)>& declare) {
  try {
    return run(name, summary, argc, argv, declare);
  } catch (const std::bad_alloc&) {
    say_without_memory({name, ": out of memory"});
    return code(ExitCode::kInput);
  } catch (const std::exception& error) {
    say_without_memory({name, ": internal error, please report it: ", error.what()});
    return code(ExitCode::kInternal);
  }
}

}  // namespace masque::cli
