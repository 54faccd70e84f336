#include "mpi_ranks.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/thread/interrupt.hpp"
#include "base/thread/parallel.hpp"
#include "kernel/number/bfloat16.hpp"

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
