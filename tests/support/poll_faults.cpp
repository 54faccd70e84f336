// A library that tests preload into a tool (LD_PRELOAD): a signal arrives exactly where the tool
// looks for one.
//   MASQUE_SIGNAL_AT=N      before the N-th look
//   MASQUE_SIGNAL=NUMBER    which signal; without it SIGINT
//   MASQUE_LOOKS=FILE       there, when the tool ends: the number of looks, and the longest time of
//                           one thread's computing between two looks, in milliseconds
// A look is a call of masque::throw_if_interrupted or masque::noted_interrupt. The tools know
// nothing of this library: it finds the functions in the symbol table of the program, and puts a
// breakpoint at the begin of each. A program without the symbols, as a shell, runs as it is.
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#if defined(__x86_64__)

namespace {

constexpr const char* kPolls[] = {"_ZN6masque20throw_if_interruptedEv",
                                  "_ZN6masque15noted_interruptEv"};
constexpr unsigned char kBreakpoint = 0xCC;
constexpr std::uint64_t kSingleStep = 0x100;  // the trap flag

struct Breakpoint {
  unsigned char* at = nullptr;
  unsigned char code = 0;  ///< what stood there
};

Breakpoint g_points[2];
std::atomic<long> g_looks{0};
std::atomic<double> g_longest{0};
long g_signal_at = 0;
int g_signal = SIGINT;
pid_t g_process = 0;
thread_local Breakpoint* t_stepped = nullptr;
thread_local double t_last = 0;

double computed() {
  timespec now = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

void look() {
  const double now = computed();
  double longest = g_longest.load();
  while (now - t_last > longest && !g_longest.compare_exchange_weak(longest, now - t_last)) {
  }
  if (g_looks.fetch_add(1) + 1 == g_signal_at) ::raise(g_signal);
  t_last = computed();
}

/// At a breakpoint: looks, and lets the instruction that stood there run alone. After it: sets the
/// breakpoint again.
void trapped(int /*signal*/, siginfo_t* info, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  if (info->si_code == TRAP_TRACE && t_stepped != nullptr) {
    *t_stepped->at = kBreakpoint;
    t_stepped = nullptr;
    registers[REG_EFL] &= ~static_cast<greg_t>(kSingleStep);
    return;
  }
  auto* at = reinterpret_cast<unsigned char*>(registers[REG_RIP]) - 1;
  for (Breakpoint& point : g_points) {
    if (point.at != at) continue;
    // Where another thread has set it again in between, the instruction is only tried again.
    if (t_stepped == nullptr) look();
    *at = point.code;
    registers[REG_RIP] -= 1;
    registers[REG_EFL] |= static_cast<greg_t>(kSingleStep);
    t_stepped = &point;
    return;
  }
  ::_exit(125);
}

/// Calls found(name, value) for each function of the program's symbol table.
template <class Found>
void for_each_symbol(const Found& found) {
  const int fd = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  struct stat status = {};
  if (fd < 0 || ::fstat(fd, &status) != 0) return;
  const auto size = static_cast<std::size_t>(status.st_size);
  void* map = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  ::close(fd);
  if (map == MAP_FAILED) return;
  const auto* bytes = static_cast<const char*>(map);
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(bytes);
  const auto* sections = reinterpret_cast<const ElfW(Shdr)*>(bytes + header->e_shoff);
  for (int i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    const auto* symbols = reinterpret_cast<const ElfW(Sym)*>(bytes + sections[i].sh_offset);
    const char* names = bytes + sections[sections[i].sh_link].sh_offset;
    for (std::size_t k = 0; k < sections[i].sh_size / sizeof *symbols; ++k)
      found(names + symbols[k].st_name, symbols[k].st_value);
  }
  ::munmap(map, size);
}

std::uintptr_t base_of_program() {
  std::uintptr_t base = 0;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        *static_cast<std::uintptr_t*>(out) = info->dlpi_addr;
        return 1;  // the first one is the program
      },
      &base);
  return base;
}

void report() {
  const char* path = std::getenv("MASQUE_LOOKS");
  if (path == nullptr || ::getpid() != g_process) return;
  const int fd = ::open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  char text[64];
  const int size = std::snprintf(text, sizeof text, "%ld %.0f\n", g_looks.load(), g_longest.load());
  if (fd >= 0 && ::write(fd, text, static_cast<std::size_t>(size)) != size) ::_exit(125);
}

__attribute__((constructor)) void set_breakpoints() {
  const std::uintptr_t base = base_of_program();
  for_each_symbol([&](const char* name, std::uintptr_t value) {
    for (std::size_t i = 0; i < 2; ++i) {
      if (value != 0 && std::strcmp(name, kPolls[i]) == 0)
        g_points[i].at = reinterpret_cast<unsigned char*>(base + value);
    }
  });
  if (g_points[0].at == nullptr) return;
  g_process = ::getpid();
  if (const char* text = std::getenv("MASQUE_SIGNAL_AT")) g_signal_at = std::atol(text);
  if (const char* text = std::getenv("MASQUE_SIGNAL")) g_signal = std::atoi(text);
  struct sigaction action = {};
  action.sa_sigaction = trapped;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGTRAP, &action, nullptr);
  std::atexit(report);
  const long page = ::sysconf(_SC_PAGESIZE);
  for (Breakpoint& point : g_points) {
    if (point.at == nullptr) continue;
    auto* begin = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(point.at) &
                                          ~static_cast<std::uintptr_t>(page - 1));
    if (::mprotect(begin, static_cast<std::size_t>(page), PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
      ::_exit(125);
    point.code = *point.at;
    *point.at = kBreakpoint;
  }
}

}  // namespace

#endif
