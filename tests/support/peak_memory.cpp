// Runs a command and says what it held in memory at most, file pages mapped into it included.
//   peak_memory REPORT COMMAND…      writes the peak in KiB to the file REPORT
// Exit code: the command's, 128 + the signal that ended it, or 125 if it could not be run.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc < 3) return 125;
  const pid_t child = fork();
  if (child < 0) return 125;
  if (child == 0) {
    execvp(argv[2], argv + 2);
    _exit(125);
  }
  int status = 0;
  rusage usage = {};
  if (wait4(child, &status, 0, &usage) != child) return 125;
  std::FILE* report = std::fopen(argv[1], "w");
  if (report == nullptr) return 125;
  std::fprintf(report, "%ld\n", usage.ru_maxrss);
  if (std::fclose(report) != 0) return 125;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
