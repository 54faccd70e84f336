#include "mpi_transfer.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "kernel/bfloat16.hpp"

namespace masque::lm_train {

namespace {

using train::Ranks;
using train::RankShare;

/// Transfers that are under way together: one collects while the one before distributes.
constexpr std::size_t kTogether = 4;

template <class T>
MPI_Datatype type_of() {
  if constexpr (std::is_same_v<T, double>) return MPI_DOUBLE;
  if constexpr (std::is_same_v<T, float>) return MPI_FLOAT;
  return MPI_UINT16_T;
}

/// The parts of all processes, as MPI wants them; must stay while an exchange runs.
struct Parts {
  Parts(const Ranks& ranks, std::size_t size)
      : count(static_cast<std::size_t>(ranks.count())),
        rank(static_cast<std::size_t>(ranks.rank())) {
    for (int r = 0; r < ranks.count(); ++r) {
      const RankShare part = part_of(ranks, r, static_cast<Index>(size));
      sizes.push_back(static_cast<int>(part.end - part.begin));
      begins.push_back(static_cast<int>(part.begin));
    }
    sent_sizes = sizes;
    sent_sizes[rank] = 0;
    own = static_cast<std::size_t>(sizes[rank]);
    begin = static_cast<std::size_t>(begins[rank]);
    for (std::size_t r = 0; r < count; ++r) {
      own_sizes.push_back(r == rank ? 0 : sizes[rank]);
      own_begins.push_back(static_cast<int>(r) * sizes[rank]);
    }
  }

  /// `got` ← the own part of what each process has as `from`, one process after the other; the own
  /// numbers do not travel.
  template <class T>
  MPI_Request collect(const T* from, T* got, MPI_Comm world) const {
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Ialltoallv(from, sent_sizes.data(), begins.data(), type_of<T>(), got,
                             own_sizes.data(), own_begins.data(), type_of<T>(), world, &request));
    return request;
  }
  /// The own part of `all` to all.
  template <class T>
  MPI_Request distribute(T* all, MPI_Comm world) const {
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, sizes.data(), begins.data(),
                              type_of<T>(), world, &request));
    return request;
  }
  /// Calls visit(begin, size) for the parts of all other processes.
  template <class F>
  void for_others(const F& visit) const {
    for (std::size_t r = 0; r < count; ++r) {
      if (r != rank) visit(static_cast<std::size_t>(begins[r]), static_cast<std::size_t>(sizes[r]));
    }
  }

  std::size_t count, rank;
  std::vector<int> sizes, begins, sent_sizes;
  std::vector<int> own_sizes, own_begins;
  std::size_t own = 0, begin = 0;
};

/// Memory that is not filled.
template <class T>
std::unique_ptr<T[]> room(std::size_t size) {
  return std::make_unique_for_overwrite<T[]>(size);
}

/// `sum`[i] ← the sum over all processes r of numbers_of(r)(i), in their order.
template <class T, class F>
void add_in_order(std::size_t processes, std::size_t size, T* sum, const F& numbers_of) {
  for (std::size_t r = 0; r < processes; ++r) {
    const auto number = numbers_of(r);
    if (r == 0) {
      for (std::size_t i = 0; i < size; ++i) sum[i] = number(i);
    } else {
      for (std::size_t i = 0; i < size; ++i) sum[i] += number(i);
    }
  }
}

/// What travels for numbers of type T: T itself, or bfloat16 for float.
template <class T>
void convert(const T* from, std::size_t size, T* to) {
  std::copy_n(from, size, to);
}
void convert(const float* from, std::size_t size, std::uint16_t* to) {
  kernel::to_bf16_row(from, static_cast<Index>(size), to);
}
void convert(const std::uint16_t* from, std::size_t size, float* to) {
  for (std::size_t i = 0; i < size; ++i) to[i] = kernel::from_bf16(from[i]);
}

/// Of numbers that travel as Sent. What MPI reads and writes is a copy, so that a process that
/// fails may free its numbers.
template <class T, class Sent>
class Sum final : public Transfer {
 public:
  Sum(const Ranks& ranks, std::span<T> numbers, bool own_part_only)
      : parts_(ranks, numbers.size()), numbers_(numbers), own_part_only_(own_part_only) {}

  MPI_Request collect(MPI_Comm world) override {
    sent_ = room<Sent>(numbers_.size());
    got_ = room<Sent>(parts_.own * parts_.count);
    parts_.for_others([&](std::size_t begin, std::size_t size) {
      convert(numbers_.data() + begin, size, sent_.get() + begin);
    });
    return parts_.collect(sent_.get(), got_.get(), world);
  }
  void add() override {
    const T* own = numbers_.data() + parts_.begin;
    Sent* sum = sent_.get() + parts_.begin;
    if constexpr (std::is_same_v<T, Sent>) {
      add_in_order(parts_.count, parts_.own, sum, [&](std::size_t r) {
        const T* from = r == parts_.rank ? own : got_.get() + r * parts_.own;
        return [from](std::size_t i) { return from[i]; };
      });
    } else {
      // The own numbers are rounded as those of the others.
      convert(own, parts_.own, got_.get() + parts_.rank * parts_.own);
      const std::unique_ptr<T[]> exact = room<T>(parts_.own);
      add_in_order(parts_.count, parts_.own, exact.get(), [&](std::size_t r) {
        const Sent* from = got_.get() + r * parts_.own;
        return [from](std::size_t i) { return kernel::from_bf16(from[i]); };
      });
      convert(exact.get(), parts_.own, sum);
    }
  }
  MPI_Request distribute(MPI_Comm world) override {
    return own_part_only_ ? MPI_REQUEST_NULL : parts_.distribute(sent_.get(), world);
  }
  void end() override {
    const std::size_t begin = own_part_only_ ? parts_.begin : 0;
    convert(sent_.get() + begin, own_part_only_ ? parts_.own : numbers_.size(),
            numbers_.data() + begin);
  }

 private:
  Parts parts_;
  std::span<T> numbers_;
  bool own_part_only_;
  std::unique_ptr<Sent[]> sent_, got_;
};

class Gather final : public Transfer {
 public:
  Gather(const Ranks& ranks, std::span<float> numbers)
      : parts_(ranks, numbers.size()), numbers_(numbers) {}

  MPI_Request collect(MPI_Comm /*world*/) override {
    all_ = room<float>(numbers_.size());
    std::copy_n(numbers_.data() + parts_.begin, parts_.own, all_.get() + parts_.begin);
    return MPI_REQUEST_NULL;
  }
  void add() override {}
  MPI_Request distribute(MPI_Comm world) override { return parts_.distribute(all_.get(), world); }
  void end() override {
    parts_.for_others([&](std::size_t begin, std::size_t size) {
      std::copy_n(all_.get() + begin, size, numbers_.data() + begin);
    });
  }

 private:
  Parts parts_;
  std::span<float> numbers_;
  std::unique_ptr<float[]> all_;
};

bool has_ended(MPI_Request& request) {
  int ended = 0;
  check_mpi(MPI_Test(&request, &ended, MPI_STATUS_IGNORE));
  return ended != 0;
}

}  // namespace

template <class T>
std::unique_ptr<Transfer> make_sum(const Ranks& ranks, std::span<T> numbers) {
  return std::make_unique<Sum<T, T>>(ranks, numbers, false);
}

template std::unique_ptr<Transfer> make_sum(const Ranks&, std::span<float>);
template std::unique_ptr<Transfer> make_sum(const Ranks&, std::span<double>);

std::unique_ptr<Transfer> make_sum(const Ranks& ranks, std::span<float> numbers,
                                   const train::SumOptions& options) {
  if (options.precision == train::SumPrecision::kBf16)
    return std::make_unique<Sum<float, std::uint16_t>>(ranks, numbers, options.own_part_only);
  return std::make_unique<Sum<float, float>>(ranks, numbers, options.own_part_only);
}

std::unique_ptr<Transfer> make_gather(const Ranks& ranks, std::span<float> numbers) {
  return std::make_unique<Gather>(ranks, numbers);
}

void check_mpi(int code) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int size = 0;
  MPI_Error_string(code, text.data(), &size);
  throw InputError(fmt::format("the exchange with other processes failed: {}",
                               std::string(text.data(), static_cast<std::size_t>(size))));
}

MPI_Comm copy_of_world() {
  MPI_Comm copy = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &copy));
  check_mpi(MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN));
  return copy;
}

TransferLane::TransferLane() : collect_(copy_of_world()), distribute_(copy_of_world()) {}

void TransferLane::add(std::unique_ptr<Transfer> transfer) {
  flights_.emplace_back().transfer = std::move(transfer);
}

void TransferLane::advance(Flight& flight, bool earlier_are_distributed,
                           const std::atomic<bool>& abandoned) {
  Transfer& transfer = *flight.transfer;
  if (flight.stage == Stage::kNew && !abandoned) {
    flight.request = transfer.collect(collect_);
    flight.stage = Stage::kCollecting;
  }
  if (flight.stage == Stage::kCollecting && has_ended(flight.request) && !abandoned) {
    transfer.add();
    flight.stage = Stage::kAdded;
  }
  if (flight.stage == Stage::kAdded && earlier_are_distributed) {
    flight.request = transfer.distribute(distribute_);
    flight.stage = Stage::kDistributing;
  }
  if (flight.stage == Stage::kDistributing && has_ended(flight.request) && !abandoned) {
    transfer.end();
    flight.stage = Stage::kEnded;
  }
}

std::size_t TransferLane::progress(const std::atomic<bool>& abandoned) {
  bool earlier = true;
  for (std::size_t i = 0; i < std::min(kTogether, flights_.size()); ++i) {
    advance(flights_[i], earlier, abandoned);
    earlier = earlier && flights_[i].stage >= Stage::kDistributing;
  }
  std::size_t ended = 0;
  for (; !flights_.empty() && flights_.front().stage == Stage::kEnded; ++ended)
    flights_.pop_front();
  return ended;
}

}  // namespace masque::lm_train
