// A library that tests preload into a tool (LD_PRELOAD). It marks where main begins, for strace, by
// a call of access("/main begins"), and can let allocations fail from there on:
//   MASQUE_FAIL_ALLOCATION=N    the N-th one fails; N+: and all after it
//   MASQUE_ALLOCATIONS=FILE     their number is written there when the tool ends
// Those of oneDNN never fail: it goes on without looking (2.6), and the program ends by a signal;
// nor those of libgomp, which oneDNN runs on: it ends the program itself; nor those of libcrypto,
// whose default context may be left with a lock that is null (3.0). Nor do those by which
// glibc notes the destructor of a thread_local: it ends the program itself. What happens before
// main is the loader's and the standard library's; nothing of the user's is open by then, and
// nobody could catch what a static initialiser throws.
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {
// glibc's own allocator, under the names that stay when malloc is replaced.
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* old, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
}

namespace {

using Main = int (*)(int, char**, char**);

Main g_main = nullptr;
std::atomic<long> g_count{0};
std::atomic<bool> g_counting{false};
long g_first = 0;
long g_last = -1;

thread_local bool t_looking = false;  // backtrace may allocate

bool is_fatal_elsewhere() {
  void* frames[24];
  t_looking = true;
  const int count = ::backtrace(frames, 24);
  bool found = false;
  for (int i = 0; i < count && !found; ++i) {
    Dl_info info = {};
    found = ::dladdr(frames[i], &info) != 0 && info.dli_fname != nullptr &&
            (std::strstr(info.dli_fname, "libdnnl") != nullptr ||
             std::strstr(info.dli_fname, "libgomp") != nullptr ||
             std::strstr(info.dli_fname, "libcrypto") != nullptr ||
             (info.dli_sname != nullptr &&
              std::strcmp(info.dli_sname, "__cxa_thread_atexit_impl") == 0));
  }
  t_looking = false;
  return found;
}

bool fails() {
  if (t_looking || !g_counting.load(std::memory_order_relaxed)) return false;
  const long number = g_count.fetch_add(1) + 1;
  if (number < g_first || number > g_last || is_fatal_elsewhere()) return false;
  errno = ENOMEM;
  return true;
}

void report() {
  const char* path = std::getenv("MASQUE_ALLOCATIONS");
  if (path == nullptr) return;
  const int fd = ::open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  char text[32];
  const int size = std::snprintf(text, sizeof text, "%ld\n", g_count.load());
  if (fd >= 0 && ::write(fd, text, static_cast<std::size_t>(size)) != size) ::_exit(125);
}

int marked_main(int argc, char** argv, char** environment) {
  if (const char* text = std::getenv("MASQUE_FAIL_ALLOCATION")) {
    g_first = std::atol(text);
    g_last = std::strchr(text, '+') != nullptr ? __LONG_MAX__ : g_first;
  }
  std::atexit(report);
  is_fatal_elsewhere();  // the first call loads a library
  if (::access("/main begins", F_OK) == 0) return 125;
  g_counting = true;
  const int result = g_main(argc, argv, environment);
  g_counting = false;
  return result;
}

}  // namespace

extern "C" {

int __libc_start_main(Main main, int argc, char** argv, void (*init)(), void (*fini)(),
                      void (*rtld_fini)(), void* stack_end) {
  using Start = int (*)(Main, int, char**, void (*)(), void (*)(), void (*)(), void*);
  g_main = main;
  const auto start = reinterpret_cast<Start>(::dlsym(RTLD_NEXT, "__libc_start_main"));
  return start(marked_main, argc, argv, init, fini, rtld_fini, stack_end);
}

void* malloc(std::size_t size) { return fails() ? nullptr : __libc_malloc(size); }

void* calloc(std::size_t count, std::size_t size) {
  return fails() ? nullptr : __libc_calloc(count, size);
}

void* realloc(void* old, std::size_t size) { return fails() ? nullptr : __libc_realloc(old, size); }

void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return fails() ? nullptr : __libc_memalign(alignment, size);
}

void* memalign(std::size_t alignment, std::size_t size) { return aligned_alloc(alignment, size); }

int posix_memalign(void** out, std::size_t alignment, std::size_t size) {
  *out = aligned_alloc(alignment, size);
  return *out == nullptr ? ENOMEM : 0;
}

}  // extern "C"
