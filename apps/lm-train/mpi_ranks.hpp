// The processes that mpirun or srun has started together.
#pragma once

#include <mpi.h>

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
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "train/loss/ranks.hpp"

namespace masque::lm_train {

// Sums over the processes of MPI, in two exchanges that take time: parts to those that add them up,
// and what they make of them to all.

/// What is sent and received for one sum or gather. The numbers are read in collect() and add(),
/// and written in end(); MPI itself has a copy.
class Transfer {
 public:
  Transfer() = default;
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  virtual ~Transfer() = default;

  /// Begins the first exchange, over `world`: everyone's numbers of the own part. MPI_REQUEST_NULL:
  /// there is none.
  virtual MPI_Request collect(MPI_Comm world) = 0;
  /// Adds them up, in the order of the processes.
  virtual void add() = 0;
  /// Begins the second exchange, over `world`: the own part to all; in the same way.
  virtual MPI_Request distribute(MPI_Comm world) = 0;
  /// Puts what came to its place.
  virtual void end() = 0;
};

/// Returns `numbers` ← their sum over `ranks`, as Ranks::sum; T is float or double.
template <class T>
std::unique_ptr<Transfer> make_sum(const train::Ranks& ranks, std::span<T> numbers);
/// Returns what Ranks::start_sum says of `numbers` and `options`.
std::unique_ptr<Transfer> make_sum(const train::Ranks& ranks, std::span<float> numbers,
                                   const train::SumOptions& options);
/// Returns what Ranks::start_gather says of `numbers`.
std::unique_ptr<Transfer> make_gather(const train::Ranks& ranks, std::span<float> numbers);

/// Throws InputError with MPI's words unless `code`, which a function of MPI has returned, is
/// MPI_SUCCESS.
void check_mpi(int code);

/// Returns a copy of the communicator of all processes, whose functions return errors. All
/// processes call it together. Throws as check_mpi().
MPI_Comm copy_of_world();

/// Transfers that run in their order, a few of them at the same time. For one thread, the one that
/// calls MPI.
class TransferLane {
 public:
  /// Over copies of the communicator of all processes: each exchange has its own, so that all
  /// processes begin the same ones on it in the same order, whatever ends first.
  TransferLane();
  TransferLane(const TransferLane&) = delete;
  TransferLane& operator=(const TransferLane&) = delete;

  /// Adds `transfer` at the end.
  void add(std::unique_ptr<Transfer> transfer);
  /// Whether nothing is under way.
  bool idle() const { return flights_.empty(); }
  /// Goes on with those under way, without waiting; returns how many have ended. Once `abandoned`,
  /// which another thread may set, nobody's numbers are touched. Throws InputError.
  std::size_t progress(const std::atomic<bool>& abandoned);

 private:
  enum class Stage { kNew, kCollecting, kAdded, kDistributing, kEnded };
  struct Flight {
    std::unique_ptr<Transfer> transfer;
    Stage stage = Stage::kNew;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  void advance(Flight& flight, bool earlier_are_distributed, const std::atomic<bool>& abandoned);

  MPI_Comm collect_ = MPI_COMM_NULL, distribute_ = MPI_COMM_NULL;
  std::deque<Flight> flights_;
};

// The thread of a process that makes all calls of MPI, while the others compute.

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

/// Ranks of MPI. The order of no sum is MPI's: each process gets its part of the numbers from all,
/// adds it up in their order, and hands it to all, so that 2 (P − 1) / P of the numbers leave a
/// process, as in a ring.
class MpiRanks final : public train::Ranks {
 public:
  /// Starts MPI with the arguments of `main`, `argc` and `argv`. Throws InputError.
  MpiRanks(int argc, char** argv);

  int count() const override { return count_; }
  int rank() const override { return rank_; }
  void sum(std::span<float> numbers) override;
  void sum(std::span<double> numbers) override;
  void start_sum(std::span<float> numbers, const train::SumOptions& options) override;
  void start_gather(std::span<float> numbers) override;
  void finish() override;
  void abandon() override { exchange_->abandon(); }

  /// Between the processes, besides sums.
  MpiExchange& exchange() { return *exchange_; }

  /// Waits until all have come here, and ends MPI.
  void end();
  /// Ends all processes with this `code`.
  void end_all(int code);

 private:
  template <class T>
  void sum_now(std::span<T> numbers);

  int count_ = 1;
  int rank_ = 0;
  std::unique_ptr<MpiExchange> exchange_;
};

}  // namespace masque::lm_train
