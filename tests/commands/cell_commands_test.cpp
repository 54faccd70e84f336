// The cells of a sweep as a list and as a script.
#include "commands/cell_commands.hpp"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "support/message.hpp"

namespace masque::commands {
namespace {

std::string refusal(const CellOptions& options) {
  return test::message_of<UsageError>([&] { check_cells(options); });
}

TEST_CASE("words are quoted as a shell needs it") {
  const std::vector<std::string> words{"lm-train", "a b", "it's", "", "x=1,2", "rope(base=10)"};
  CHECK(shell_line(words) == "lm-train 'a b' 'it'\\''s' '' x=1,2 'rope(base=10)'");
  CHECK(shell_line({}).empty());
}

TEST_CASE("no word ends its line, and none has what a terminal obeys") {
  for (const char* bad : {"n\ntouch PWNED\nm", "a\r", "a\tb", "\x1b[31m", "\x7f", "a\u009b",
                          "\u202e", "\u2028", "\xff", "\xc3"}) {
    CAPTURE(bad);
    const std::vector<std::string> words{"lm-train", bad};
    CHECK(test::contains(test::message_of<UsageError>([&] { shell_line(words); }),
                         "expected text without control characters"));
  }
  const std::vector<std::string> odd{"größe", "a\\b", "a{}b", "$(x)", "*", "埋"};
  CHECK(shell_line(odd) == "'größe' 'a\\b' 'a{}b' '$(x)' '*' '埋'");
}

TEST_CASE("resources are those of a script, and nothing in them ends its line") {
  CHECK(refusal({.slurm_time = "1:00:00"}) == "slurm_time needs print_slurm");
  CHECK(refusal({.slurm_memory = "1G"}) == "slurm_memory needs print_slurm");
  CHECK(refusal({.slurm_cpus = 2}) == "slurm_cpus needs print_slurm");
  for (const char* good : {"90", "4:00:00", "2-12", "0"})
    check_cells({.print_slurm = true, .slurm_time = good});
  for (const char* good : {"8G", "500M", "4096"})
    check_cells({.print_slurm = true, .slurm_memory = good});
  for (const char* bad : {"", "x", "1h", "1\nrm", ":1", "1 2"}) {
    CAPTURE(bad);
    CHECK(refusal({.print_slurm = true, .slurm_time = bad}).starts_with("slurm_time: found '"));
    CHECK(refusal({.print_slurm = true, .slurm_memory = bad}).starts_with("slurm_memory: found '"));
  }
}

}  // namespace
}  // namespace masque::commands
