#include "mpi_exchange.hpp"

#include <pthread.h>
#include <sched.h>

#include <array>
#include <chrono>
#include <csignal>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/interrupt.hpp"
#include "base/parallel.hpp"

namespace masque::lm_train {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kAlive = 1;   ///< tag of a sign of life
constexpr int kSpeaks = 2;  ///< tag of: this process prints why all end
constexpr seconds kBetweenBeats(2);
/// A broken connection that comes back, as after some seconds, is no failure.
constexpr seconds kLost(30);
/// If this thread had no turn for so long, the machine slept, and the others are not to blame.
constexpr seconds kAsleep(5);

/// How long a call of MPI takes at most, unless a process on the other side is gone.
constexpr milliseconds kMostInside(200);

/// How long the others may take after a signal: mpirun kills a second after SIGTERM.
milliseconds grace(int signal) {
  return signal == SIGTERM ? milliseconds(500) : milliseconds(10000);
}

}  // namespace

MpiPulse::MpiPulse(int rank, int count)
    : world_(copy_of_world()), sent_(Clock::now()), looked_(Clock::now()) {
  std::array<char, MPI_MAX_PROCESSOR_NAME> own{};
  int size = 0;
  check_mpi(MPI_Get_processor_name(own.data(), &size));
  std::vector<char> all(own.size() * static_cast<std::size_t>(count));
  check_mpi(MPI_Allgather(own.data(), MPI_MAX_PROCESSOR_NAME, MPI_CHAR, all.data(),
                          MPI_MAX_PROCESSOR_NAME, MPI_CHAR, world_));
  const int end = rank == 0 ? count : 1;
  for (int r = rank == 0 ? 1 : 0; r < end; ++r) {
    Peer& peer = peers_.emplace_back();
    peer.rank = r;
    peer.machine = all.data() + own.size() * static_cast<std::size_t>(r);
    peer.heard = Clock::now();
  }
}

void MpiPulse::send(int tag) {
  for (Peer& peer : peers_) {
    int ended = 0;
    check_mpi(MPI_Test(&peer.request, &ended, MPI_STATUS_IGNORE));
    // Where the last one is still on its way, another one would not help.
    if (ended == 0) continue;
    // NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker): tested before the next one
    check_mpi(MPI_Isend(&byte_, 1, MPI_CHAR, peer.rank, tag, world_, &peer.request));
  }
}

void MpiPulse::speak() { send(kSpeaks); }

void MpiPulse::beat() {
  const Clock::time_point now = Clock::now();
  if (now - looked_ > kAsleep) {
    for (Peer& peer : peers_) peer.heard = now;
  }
  looked_ = now;
  if (now - sent_ > kBetweenBeats) {
    sent_ = now;
    send(kAlive);
  }
  for (Peer& peer : peers_) {
    int there = 0;
    MPI_Status status;
    check_mpi(MPI_Iprobe(peer.rank, MPI_ANY_TAG, world_, &there, &status));
    if (there != 0) {
      char byte = 0;
      check_mpi(MPI_Recv(&byte, 1, MPI_CHAR, peer.rank, MPI_ANY_TAG, world_, &status));
      other_speaks_ = other_speaks_ || status.MPI_TAG == kSpeaks;
      peer.heard = now;
    }
    if (now - peer.heard > kLost) {
      throw InputError(
          fmt::format("process {} on {} has not answered for {} s; its machine or the "
                      "network has failed",
                      peer.rank, escape(peer.machine), kLost.count()));
    }
  }
}

MpiExchange::MpiExchange(int rank, int count) : pulse_(rank, count), first_(rank == 0) {
  // Signals are for the threads that look at them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "lm-train mpi");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void MpiExchange::start(Lane lane, std::unique_ptr<Transfer> transfer) {
  const std::lock_guard lock(mutex_);
  begun_[lane].push_back(std::move(transfer));
  ++started_[lane];
  to_thread_.notify_one();
}

void MpiExchange::wait(Lane lane) {
  std::unique_lock lock(mutex_);
  MASQUE_CHECK(!abandoned_);
  waits_ = true;
  Clock::time_point noted;
  int signal = 0;
  const auto look = [&] {
    const int now = noted_interrupt();
    if (now != signal) noted = Clock::now();
    signal = now;
    return signal != 0 && Clock::now() - noted > grace(signal);
  };
  bool given_up = false;
  while (ended_[lane] < started_[lane] && !failed_ && !given_up) {
    to_caller_.wait_for(lock, milliseconds(20));
    given_up = look();
  }
  waits_ = false;
  if (!failed_ && !given_up) return;
  abandon(lock);
  lock.unlock();
  if (failed_) std::rethrow_exception(failed_);
  if (given_up_) given_up_();
  throw Interrupted(signal);
}

void MpiExchange::abandon() {
  std::unique_lock lock(mutex_);
  abandon(lock);
}

void MpiExchange::abandon(std::unique_lock<std::mutex>& lock) {
  abandoned_ = abandons_ = true;
  to_thread_.notify_one();
  // MPI may not return to the thread, which then touches nothing any more.
  to_caller_.wait_for(lock, kMostInside, [&] { return !abandons_; });
}

void MpiExchange::speak() {
  std::unique_lock lock(mutex_);
  must_speak_ = true;
  to_thread_.notify_one();
  to_caller_.wait_for(lock, milliseconds(100), [&] { return !must_speak_; });
}

bool MpiExchange::other_speaks() {
  const std::lock_guard lock(mutex_);
  return other_speaks_;
}

void MpiExchange::on_speech(std::function<void()> heard) {
  const std::lock_guard lock(mutex_);
  heard_ = std::move(heard);
}

void MpiExchange::on_giving_up(std::function<void()> given_up) { given_up_ = std::move(given_up); }

void MpiExchange::stop() {
  if (!thread_.joinable()) return;
  std::unique_lock lock(mutex_);
  stops_ = true;
  to_thread_.notify_one();
  const bool stopped = to_caller_.wait_for(lock, kMostInside, [&] { return stopped_; });
  lock.unlock();
  if (stopped) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

/// Takes what the caller has begun; where there is nothing to do it naps. False: the thread ends.
bool MpiExchange::take_over() {
  constexpr milliseconds kIdleNap(10);
  std::unique_lock lock(mutex_);
  if (abandons_) gone_ = true;
  bool busy = false;
  for (std::size_t l = 0; l < kLanes; ++l) {
    for (std::unique_ptr<Transfer>& transfer : begun_[l]) {
      if (!gone_) lanes_[l].add(std::move(transfer));
    }
    begun_[l].clear();
    busy = busy || !lanes_[l].idle();
  }
  busy_ = busy && !gone_;
  if (!busy_ && !stops_ && !must_speak_ && !abandons_) to_thread_.wait_for(lock, kIdleNap);
  abandons_ = false;
  to_caller_.notify_all();
  return !stops_;
}

/// One look at everything.
void MpiExchange::turn() {
  std::array<std::size_t, kLanes> ended{};
  for (std::size_t l = 0; l < kLanes && !gone_; ++l) ended[l] = lanes_[l].progress(abandoned_);
  pulse_.beat();
  // If a signal ends all, the first process says so.
  const int signal = noted_interrupt();
  const bool speaks = first_ && signal != 0 && signal != told_;
  told_ = signal;
  const std::lock_guard lock(mutex_);
  if (speaks || must_speak_) pulse_.speak();
  must_speak_ = false;
  if (pulse_.other_speaks() && !other_speaks_ && heard_) heard_();
  other_speaks_ = pulse_.other_speaks();
  for (std::size_t l = 0; l < kLanes; ++l) {
    ended_[l] += ended[l];
    if (ended[l] > 0) moved_ = Clock::now();
  }
  to_caller_.notify_all();
}

void MpiExchange::run() {
  // While the caller waits, the processor is free; else it is the caller's, and the system's
  // buffers hold what comes during a nap.
  constexpr milliseconds kSpin(2);
  constexpr std::chrono::microseconds kNap(50), kLongNap(50);
  while (take_over()) {
    const std::exception_ptr failed = caught([this] { turn(); });
    if (failed) {
      const std::lock_guard lock(mutex_);
      gone_ = true;
      if (!failed_) failed_ = failed;
      to_caller_.notify_all();
    }
    if (!busy_) continue;
    if (waits_ && Clock::now() - moved_ < kSpin) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(waits_ ? kNap : kLongNap);
    }
  }
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  to_caller_.notify_all();
}

}  // namespace masque::lm_train
