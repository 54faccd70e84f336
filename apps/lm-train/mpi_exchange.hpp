// The thread of a process that makes all calls of MPI, while the others compute.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "mpi_transfer.hpp"

namespace masque::lm_train {

/// Whom a process hears from. Every process sends a sign of life to the first one every other
/// second, and that one to all: a process may compute or wait for its disk as long as it likes, but
/// if nothing comes its machine or the network has failed. For the thread that calls MPI.
class MpiPulse {
 public:
  /// Of process `rank` of `count`. Asks all for the names of their machines.
  MpiPulse(int rank, int count);

  /// Sends and receives what is due. Throws InputError for a process that is not heard of.
  void beat();
  /// Tells the others that this process prints why all end.
  void speak();
  /// Whether another one has told so.
  bool other_speaks() const { return other_speaks_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Peer {
    int rank = 0;
    std::string machine;
    Clock::time_point heard;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  void send(int tag);

  MPI_Comm world_ = MPI_COMM_NULL;
  std::vector<Peer> peers_;  ///< the first process: all others; they: the first
  Clock::time_point sent_, looked_;
  bool other_speaks_ = false;
  char byte_ = 0;
};

/// Transfers in the background. For one thread besides its own.
class MpiExchange {
 public:
  /// Which transfers keep their order among each other.
  enum Lane : std::size_t { kSmall, kBulk, kLanes };

  /// Of process `rank` of `count`; starts the thread, after which nobody else may call MPI until
  /// stop().
  MpiExchange(int rank, int count);
  MpiExchange(const MpiExchange&) = delete;
  MpiExchange& operator=(const MpiExchange&) = delete;
  ~MpiExchange() { stop(); }

  /// Begins `transfer` on `lane`.
  void start(Lane lane, std::unique_ptr<Transfer> transfer);
  /// Waits for all that was begun on `lane`. Throws InputError if a process is not heard of any
  /// more or MPI fails, and Interrupted if a signal has come and the others do not answer: mpirun
  /// sends SIGTERM to all if one of them is gone, and kills them a second later. Where it throws,
  /// all is abandoned.
  void wait(Lane lane);
  /// Forgets all transfers, for good: their memory is no longer touched, and wait() must not be
  /// called any more.
  void abandon();
  /// Tells the other processes that this one prints why all end. Returns when that is on its way.
  void speak();
  /// Whether another process has told so.
  bool other_speaks();
  /// Calls `heard` once another process speaks, on the thread of the exchange. Before the first
  /// transfer.
  void on_speech(std::function<void()> heard);
  /// Calls `given_up`, on the caller's thread, before wait() throws Interrupted.
  void on_giving_up(std::function<void()> given_up);
  /// Ends the thread: from now on the caller may call MPI. After abandon() MPI may hold it; then it
  /// is left behind, for a process that ends.
  void stop();

 private:
  void abandon(std::unique_lock<std::mutex>& lock);
  void run();
  bool take_over();
  void turn();

  std::mutex mutex_;
  std::condition_variable to_thread_, to_caller_;
  std::array<std::deque<std::unique_ptr<Transfer>>, kLanes> begun_;  ///< not taken by the thread
  std::array<std::uint64_t, kLanes> started_{};                      ///< by the caller
  std::array<std::uint64_t, kLanes> ended_{};
  std::atomic<bool> waits_{false};      ///< the caller does nothing else
  bool stops_ = false;                  ///< the thread must end
  bool abandons_ = false;               ///< transfers must be forgotten now
  std::atomic<bool> abandoned_{false};  ///< they were, or will be at once
  bool stopped_ = false;                ///< the thread has ended
  bool must_speak_ = false;             ///< the others must be told
  bool other_speaks_ = false;
  std::function<void()> heard_, given_up_;
  std::exception_ptr failed_;

  // Of the thread:
  std::array<TransferLane, kLanes> lanes_;
  MpiPulse pulse_;
  bool first_;
  bool gone_ = false;  ///< abandoned or failed: only signs of life go on
  bool busy_ = false;  ///< transfers are under way
  int told_ = 0;       ///< the signal that the others know of
  std::chrono::steady_clock::time_point moved_;
  std::thread thread_;
};

}  // namespace masque::lm_train
