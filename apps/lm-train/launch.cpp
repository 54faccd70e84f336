#include "launch.hpp"

#include <cstdlib>
#include <string_view>

#ifdef MASQUE_MPI
#include <fcntl.h>
#include <mpi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <thread>
#include <vector>
#endif

#include "base/error.hpp"

namespace masque::lm_train {

namespace {

/// Set by mpirun of Open MPI for each process that it starts.
constexpr const char* kSizeName = "OMPI_COMM_WORLD_SIZE";

}  // namespace

#ifdef MASQUE_MPI

namespace {

/// Elements of a sum that are under way together: memory.
constexpr Index kBlock = Index{1} << 20;

class MpiRanks final : public train::Ranks {
 public:
  MpiRanks() {
    MPI_Comm_size(MPI_COMM_WORLD, &count_);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  }
  int count() const override { return count_; }
  int rank() const override { return rank_; }
  void sum(std::span<float> numbers) override { add(numbers, MPI_FLOAT, floats_); }
  void sum(std::span<double> numbers) override { add(numbers, MPI_DOUBLE, doubles_); }

 private:
  /// Each rank gets its part of a block from all, adds it up in their order, and hands it to all:
  /// 2 (P − 1) / P of the numbers leave a rank, as in a ring, and the order of no sum is MPI's.
  template <class T>
  void add(std::span<T> numbers, MPI_Datatype type, std::vector<T>& memory) {
    if (count_ == 1) return;
    const auto ranks = static_cast<std::size_t>(count_);
    const auto most = static_cast<std::size_t>(std::max<Index>(kBlock / count_, 1));
    while (!numbers.empty()) {
      const std::size_t part = std::min((numbers.size() + ranks - 1) / ranks, most);
      const std::size_t block = std::min(part * ranks, numbers.size());
      memory.assign(2 * part * ranks + part, T{});
      T* const send = memory.data();
      T* const got = send + part * ranks;
      T* const sum = got + part * ranks;
      std::copy_n(numbers.data(), block, send);
      const int size = static_cast<int>(part);
      MPI_Alltoall(send, size, type, got, size, type, MPI_COMM_WORLD);
      std::copy_n(got, part, sum);
      for (std::size_t r = 1; r < ranks; ++r) {
        const T* const other = got + r * part;
        for (std::size_t i = 0; i < part; ++i) sum[i] += other[i];
      }
      MPI_Allgather(sum, size, type, send, size, type, MPI_COMM_WORLD);
      std::copy_n(send, block, numbers.data());
      numbers = numbers.subspan(block);
    }
  }

  int count_ = 1;
  int rank_ = 0;
  std::vector<float> floats_;
  std::vector<double> doubles_;
};

/// Time for rank 0 to fail for the same reason.
constexpr double kMoment = 2;
constexpr double kMomentBetween = 0.02;

}  // namespace

struct Launch::State {
  std::unique_ptr<MpiRanks> ranks;
  int messages = -1;  ///< what this rank prints to stderr, kept
  int stderr_ = -1;   ///< where it would go
};

Launch::Launch(int argc, char** argv) {
  // srun with PMIx sets this one. By itself a process does not wait for MPI to start.
  if (std::getenv(kSizeName) == nullptr && std::getenv("PMIX_RANK") == nullptr) return;
  MPI_Init(&argc, &argv);
  state_ = std::make_unique<State>();
  state_->ranks = std::make_unique<MpiRanks>();
  if (state_->ranks->is_first()) return;
  // One process prints for all.
  state_->stderr_ = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  state_->messages = ::memfd_create("messages", MFD_CLOEXEC);
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (state_->messages >= 0) ::dup2(state_->messages, STDERR_FILENO);
  if (nowhere >= 0) ::dup2(nowhere, STDOUT_FILENO);
}

Launch::~Launch() = default;

train::Ranks& Launch::ranks() const { return state_ ? *state_->ranks : train::one_rank(); }

int Launch::leave(int code) {
  if (!state_) return code;
  if (code == 0) {
    MPI_Finalize();
    return 0;
  }
  // Whoever ends all may end this one, too.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_DFL);
  if (state_->stderr_ >= 0) {
    std::this_thread::sleep_for(
        std::chrono::duration<double>(kMoment + kMomentBetween * state_->ranks->rank()));
    std::array<char, 4096> text{};
    ::lseek(state_->messages, 0, SEEK_SET);
    const ssize_t size = ::read(state_->messages, text.data(), text.size());
    if (size > 0 && ::write(state_->stderr_, text.data(), static_cast<std::size_t>(size)) < 0)
      return code;  // nowhere left to print it
  }
  MPI_Abort(MPI_COMM_WORLD, code);
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
