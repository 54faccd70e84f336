#include "launch.hpp"

#include <cstdlib>
#include <string_view>

#ifdef MASQUE_MPI
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <exception>
#include <string>
#include <thread>

#include "base/thread/parallel.hpp"
#include "mpi_ranks.hpp"
#endif

#include "base/error.hpp"

namespace masque::lm_train {

namespace {

/// Set by mpirun of Open MPI for each process that it starts.
constexpr const char* kSizeName = "OMPI_COMM_WORLD_SIZE";

}  // namespace

#ifdef MASQUE_MPI

namespace {

using Clock = std::chrono::steady_clock;

/// Seconds for rank 0 to fail for the same reason.
constexpr double kMoment = 2;
constexpr double kMomentBetween = 0.02;
/// The same after a signal, for each rank between: mpirun kills a second after it.
constexpr double kSignalMoment = 0.2;
/// Seconds that the first rank may need to save after a signal.
constexpr double kMostSaving = 600;
/// Exit code of a process that has done all, if others have not.
constexpr int kOthersFailed = 3;

}  // namespace

struct Launch::State {
  std::unique_ptr<MpiRanks> ranks;  ///< nullptr: MPI did not start
  std::exception_ptr failed;        ///< why
  int messages = -1;                ///< what this rank prints to stderr, kept
  int stderr_ = -1;                 ///< where it would go

  void print(std::string_view text) const {
    if (::write(stderr_, text.data(), text.size()) < 0) return;  // nowhere left to print it
  }
  /// What this rank had printed.
  std::string kept() const {
    std::array<char, 4096> text{};
    ::lseek(messages, 0, SEEK_SET);
    const ssize_t size = ::read(messages, text.data(), text.size());
    return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
  }
  void leave_to_first() const;
  void follow_first() const;
};

Launch::Launch(int argc, char** argv) {
  // srun with PMIx sets this one. By itself a process does not wait for MPI to start.
  if (std::getenv(kSizeName) == nullptr && std::getenv("PMIX_RANK") == nullptr) return;
  state_ = std::make_unique<State>();
  state_->failed = caught([&] { state_->ranks = std::make_unique<MpiRanks>(argc, argv); });
  if (!state_->ranks) return;
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  // One process prints for all.
  if (state_->ranks->is_first()) {
    state_->ranks->exchange().on_speech([nowhere] { ::dup2(nowhere, STDERR_FILENO); });
    return;
  }
  state_->stderr_ = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  state_->messages = ::memfd_create("messages", MFD_CLOEXEC);
  if (state_->messages >= 0) ::dup2(state_->messages, STDERR_FILENO);
  if (nowhere >= 0) ::dup2(nowhere, STDOUT_FILENO);
  state_->ranks->exchange().on_giving_up([this] { state_->follow_first(); });
}

Launch::~Launch() = default;

train::Ranks& Launch::ranks() const {
  if (!state_) return train::one_rank();
  if (state_->failed) std::rethrow_exception(state_->failed);
  return *state_->ranks;
}

/// Of another rank than the first, which has failed: the first one may fail for the same reason,
/// and print it.
void Launch::State::leave_to_first() const {
  std::this_thread::sleep_for(
      std::chrono::duration<double>(kMoment + kMomentBetween * ranks->rank()));
  if (ranks->exchange().other_speaks()) return;
  ranks->exchange().speak();
  print(kept());
}

/// Of another rank than the first, after a signal: the first one saves and ends all, unless it is
/// the one that is gone, for which mpirun sends a signal, too.
void Launch::State::follow_first() const {
  MpiExchange& exchange = ranks->exchange();
  const auto begin = Clock::now();
  const auto since = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  const double moment = kSignalMoment * (ranks->rank() - 1);
  while (!exchange.other_speaks() && since() < moment)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  if (!exchange.other_speaks())
    return print("lm-train: process 0 has ended; the output folder has its last checkpoint\n");
  while (since() < kMostSaving) std::this_thread::sleep_for(std::chrono::milliseconds(100));
}

int Launch::leave(int code) {
  if (!state_ || !state_->ranks) return code;
  MpiRanks& ranks = *state_->ranks;
  if (code == 0) {
    if (!caught([&] { ranks.end(); })) return 0;
    code = kOthersFailed;
  }
  // Whoever ends all may end this one, too.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_DFL);
  if (ranks.is_first()) {
    ranks.exchange().speak();
  } else {
    state_->leave_to_first();
  }
  ranks.end_all(code);
  return code;
}

#else

/// There are others.
struct Launch::State {};

Launch::Launch(int /*argc*/, char** /*argv*/) {
  const char* size = std::getenv(kSizeName);
  if (size != nullptr && std::string_view(size) != "1") state_ = std::make_unique<State>();
}

Launch::~Launch() = default;

train::Ranks& Launch::ranks() const {
  if (state_) {
    throw UsageError(
        "started as one of several processes, but built without MPI; build with libopenmpi-dev");
  }
  return train::one_rank();
}

int Launch::leave(int code) { return code; }

#endif

}  // namespace masque::lm_train
