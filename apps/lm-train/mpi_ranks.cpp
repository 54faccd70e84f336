#include "mpi_ranks.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace masque::lm_train {

MpiRanks::MpiRanks(int argc, char** argv) {
  int threads = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &threads);
  if (threads < MPI_THREAD_SERIALIZED)
    throw InputError("this MPI cannot be called from several threads");
  MPI_Comm_size(MPI_COMM_WORLD, &count_);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  exchange_ = std::make_unique<MpiExchange>(rank_, count_);
}

template <class T>
void MpiRanks::sum_now(std::span<T> numbers) {
  if (count_ == 1) return;
  const auto most = static_cast<std::size_t>(bucket_size(*this));
  while (!numbers.empty()) {
    const std::size_t size = std::min(most, numbers.size());
    exchange_->start(MpiExchange::kSmall, make_sum(*this, numbers.first(size)));
    numbers = numbers.subspan(size);
  }
  exchange_->wait(MpiExchange::kSmall);
}

void MpiRanks::sum(std::span<float> numbers) { sum_now(numbers); }

void MpiRanks::sum(std::span<double> numbers) { sum_now(numbers); }

void MpiRanks::start_sum(std::span<float> numbers, const train::SumOptions& options) {
  if (count_ > 1) exchange_->start(MpiExchange::kBulk, make_sum(*this, numbers, options));
}

void MpiRanks::start_gather(std::span<float> numbers) {
  if (count_ > 1) exchange_->start(MpiExchange::kBulk, make_gather(*this, numbers));
}

void MpiRanks::finish() { exchange_->wait(MpiExchange::kBulk); }

void MpiRanks::end() {
  double nothing = 0;
  sum(std::span(&nothing, 1));
  exchange_->stop();
  MPI_Finalize();
}

void MpiRanks::end_all(int code) {
  exchange_->stop();
  MPI_Abort(MPI_COMM_WORLD, code);
}

}  // namespace masque::lm_train
