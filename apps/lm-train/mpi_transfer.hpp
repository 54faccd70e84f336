// Sums over the processes of MPI, in two exchanges that take time: parts to those that add them up,
// and what they make of them to all.
#pragma once

#include <mpi.h>

#include <atomic>
#include <deque>
#include <memory>
#include <span>

#include "train/loss/ranks.hpp"

namespace masque::lm_train {

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

}  // namespace masque::lm_train
