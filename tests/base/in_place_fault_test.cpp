// Every system call of a change in place, and of taking it back, is made to fail: the files are
// then old or new as a whole, or become so by the next who looks; and the failure was reported.
#include <cerrno>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file/undo_journal.hpp"
#include "support/faults.hpp"
#include "support/in_place_example.hpp"

namespace masque::test {
namespace {

using os::Call;
using State = InPlaceExample::State;

/// What goes wrong from the k-th call on.
struct Disturbance {
  int error = 0;  ///< the call fails so, or else moves one byte
  int times = 1;  ///< so many calls in a row; 0: all that follow, as if killed there
  bool harmless = false;
};

bool is_transfer(Call call) {
  return call == Call::kPread || call == Call::kRead || call == Call::kWrite ||
         call == Call::kPwrite;
}

bool applies(const Disturbance& disturbance, Call call, std::size_t size) {
  if (disturbance.error == 0) return is_transfer(call) && size > 1;
  return disturbance.error != EINTR || is_transfer(call);
}

/// Fails calls; tells whether the k-th was reached.
class Disturbed {
 public:
  Disturbed(const Disturbance& disturbance, int k)
      : faults_([this, disturbance, k](Call call, std::string_view,
                                       std::size_t size) -> std::optional<os::Fault> {
          if (!applies(disturbance, call, size)) return std::nullopt;
          ++calls_;
          if (calls_ < k || (disturbance.times > 0 && calls_ >= k + disturbance.times)) return {};
          hit_.insert(call);
          return os::Fault{.error = disturbance.error, .count = 1};
        }) {}
  bool reached() const { return !hit_.empty(); }
  const std::set<Call>& hit() const { return hit_; }

 private:
  int calls_ = 0;
  std::set<Call> hit_;
  Faults faults_;
};

/// Runs it; the message of the InputError, empty if none.
std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

void recover(const TempFolder& folder) { const LockedFiles locked(folder.path(), {"a", "b"}, 0); }

/// All of it is old or new, nothing lies about, and recovery has nothing to do any more.
void require_clean(const TempFolder& folder, const InPlaceExample& example) {
  recover(folder);
  const State state = example.state();
  REQUIRE(state != State::kMixed);
  std::vector<std::string> names{"a", "b", "text"};
  if (state == State::kNew) names.insert(names.begin() + 2, "made");
  REQUIRE(folder.names() == names);
  const LockedFiles again(folder.path(), {"a", "b"}, 0);
  REQUIRE(again.recovered().empty());
  REQUIRE(example.state() == state);
}

const Disturbance kDisturbances[] = {{EIO, 1},         {EIO, 0},     {ENOSPC, 1}, {ENOSPC, 0},
                                     {EDQUOT, 1},      {EACCES, 1},  {EACCES, 0}, {EINTR, 1, true},
                                     {EINTR, 3, true}, {0, 1, true}, {0, 0, true}};

TEST_CASE("whatever call of a change fails, it is old or new") {
  const TempFolder folder = TempFolder::in_memory();
  const InPlaceExample example(folder);
  int runs = 0;
  for (const Disturbance& disturbance : kDisturbances) {
    for (int k = 1;; ++k, ++runs) {
      example.prepare();
      std::string error;
      bool reached = false;
      {
        const Disturbed disturbed(disturbance, k);
        error = error_of([&] { example.change(); });
        reached = disturbed.reached();
      }
      CAPTURE(disturbance.error);
      CAPTURE(disturbance.times);
      CAPTURE(k);
      CAPTURE(error);
      const bool journal = std::filesystem::exists(folder / ".a.undo");
      if (!journal) REQUIRE(example.state() != State::kMixed);
      if (disturbance.harmless || !reached) {
        REQUIRE(error.empty());
        REQUIRE(example.state() == State::kNew);
      }
      // After one fault all is put right at once, unless it was the putting right that failed.
      if (error.empty()) REQUIRE(example.state() == State::kNew);
      require_clean(folder, example);
      if (!reached) break;
    }
  }
  CHECK(runs > 400);
}

TEST_CASE("killed at any call, and whatever call of the recovery fails: old or new") {
  const TempFolder folder = TempFolder::in_memory();
  const InPlaceExample example(folder);
  int runs = 0;
  for (int k = 1;; ++k) {
    bool killed = false;
    int torn = 0;
    for (const Disturbance& disturbance :
         {Disturbance{EIO, 1}, {EIO, 0}, {ENOSPC, 1}, {EINTR, 1, true}, {0, 1, true}}) {
      for (int j = 1;; ++j, ++runs) {
        example.prepare();
        {
          const Disturbed disturbed({EIO, 0}, k);
          error_of([&] { example.change(); });
          killed = disturbed.reached();
        }
        torn += std::filesystem::exists(folder / ".a.undo") ? 1 : 0;
        bool reached = false;
        std::string error;
        {
          const Disturbed disturbed(disturbance, j);
          error = error_of([&] { recover(folder); });
          reached = disturbed.reached();
        }
        CAPTURE(disturbance.error);
        CAPTURE(disturbance.times);
        CAPTURE(k);
        CAPTURE(j);
        CAPTURE(error);
        if (error.empty()) REQUIRE(example.state() != State::kMixed);
        if (disturbance.harmless) REQUIRE(error.empty());
        require_clean(folder, example);
        if (!reached) break;
      }
      if (torn == 0) break;  // nothing to take back: one is as good as all
    }
    if (!killed) break;
  }
  CHECK(runs > 2000);
}

TEST_CASE("two faults in one run, the second while the first is being put right") {
  const TempFolder folder = TempFolder::in_memory();
  const InPlaceExample example(folder);
  int journals = 0;
  for (int k = 1;; ++k) {
    bool first = false;
    for (int j = k + 1;; ++j) {
      example.prepare();
      bool second = false;
      int calls = 0;
      {
        const Faults faults([&](Call, std::string_view, std::size_t) -> std::optional<os::Fault> {
          ++calls;
          if (calls == k) first = true;
          if (calls == j) second = true;
          return calls == k || calls == j ? std::optional(os::Fault{.error = EIO}) : std::nullopt;
        });
        error_of([&] { example.change(); });
      }
      CAPTURE(k);
      CAPTURE(j);
      const bool journal = std::filesystem::exists(folder / ".a.undo");
      journals += journal ? 1 : 0;
      if (!journal) REQUIRE(example.state() != State::kMixed);
      require_clean(folder, example);
      if (!second) break;
    }
    if (!first) break;
  }
  CHECK(journals > 20);
}

}  // namespace
}  // namespace masque::test
