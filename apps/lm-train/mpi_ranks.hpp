// The processes that mpirun or srun has started together.
#pragma once

#include <memory>

#include "mpi_exchange.hpp"
#include "train/loss/ranks.hpp"

namespace masque::lm_train {

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
