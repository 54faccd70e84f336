// A change in place when the power is lost, at every moment of it and of its recovery: whatever
// part of what was not synced survives, what is found is the old state or the new one.
#include <filesystem>
#include <memory>
#include <set>

#include <doctest/doctest.h>

#include "support/disk_model.hpp"
#include "support/in_place_example.hpp"

namespace masque::test {
namespace {

using State = InPlaceExample::State;

/// Makes the folder hold this. Files keep their inodes where they are there.
void materialise(const TempFolder& folder, const DiskState& state) {
  for (const std::string& name : folder.names()) {
    if (!state.contains(name)) std::filesystem::remove(folder / name);
  }
  for (const auto& [name, content] : state) write_file(folder / name, content);
}

void recover_again(const TempFolder& folder) {
  const LockedFiles locked(folder.path(), {"a", "b"}, 0);
}

/// Recovers and returns what there is then; nothing else may be left.
State settled(const TempFolder& folder, const InPlaceExample& example) {
  recover_again(folder);
  const State state = example.state();
  REQUIRE(state != State::kMixed);
  const DiskState now = [&] {
    DiskState all;
    for (const std::string& name : folder.names()) all[name] = read_file(folder / name);
    return all;
  }();
  REQUIRE(now.size() == (state == State::kNew ? 4 : 3));
  const LockedFiles again(folder.path(), {"a", "b"}, 0);
  REQUIRE(again.recovered().empty());
  REQUIRE(example.state() == state);
  return state;
}

TEST_CASE("power lost during a change: old or new, and new once it was done") {
  const TempFolder folder = TempFolder::in_memory();
  const InPlaceExample example(folder);
  auto disk = std::make_unique<DiskModel>(folder.path());
  example.change();
  const std::size_t events = disk->events();
  REQUIRE(events > 20);
  os::set_fault_injector(nullptr);
  std::set<State> seen;
  int states = 0;
  for (std::size_t count = 0; count <= events; ++count) {
    CAPTURE(count);
    disk->crashes(count, 100, 1, [&](const DiskState& state) {
      materialise(folder, state);
      const State found = settled(folder, example);
      if (count == 0) REQUIRE(found == State::kOld);
      seen.insert(found);
      ++states;
    });
  }
  // The last events are the removal of the journal, the folder's sync and that of the temporaries.
  disk->crashes(events, 100, 2, [&](const DiskState& state) {
    materialise(folder, state);
    REQUIRE(settled(folder, example) == State::kNew);
  });
  CHECK(seen.size() == 2);
  CHECK(states > 1000);
}

TEST_CASE("power lost during a change, and again during its recovery") {
  const TempFolder folder = TempFolder::in_memory();
  const InPlaceExample example(folder);
  auto disk = std::make_unique<DiskModel>(folder.path());
  example.change();
  const std::size_t events = disk->events();
  os::set_fault_injector(nullptr);
  int states = 0;
  for (std::size_t count = 0; count <= events; ++count) {
    disk->crashes(count, 6, 3, [&](const DiskState& state) {
      if (!state.contains(".a.undo")) return;
      materialise(folder, state);
      auto again = std::make_unique<DiskModel>(folder.path());
      recover_again(folder);
      os::set_fault_injector(nullptr);
      const State wanted = example.state();
      REQUIRE(wanted != State::kMixed);
      for (std::size_t j = 0; j <= again->events(); ++j) {
        CAPTURE(count);
        CAPTURE(j);
        again->crashes(j, 12, 4, [&](const DiskState& second) {
          materialise(folder, second);
          REQUIRE(settled(folder, example) == wanted);
          ++states;
        });
      }
    });
  }
  CHECK(states > 2000);
}

TEST_CASE(
    "the model of the disk loses what was not synced, and a journal that is not synced fails") {
  const TempFolder folder = TempFolder::in_memory();
  const InPlaceExample example(folder);
  const DiskModel disk(folder.path());
  // Without syncs some state must be mixed: the model can tell a wrong order from a right one.
  const LockedFiles locked(folder.path(), {"a", "b"}, 0);
  const std::string bytes(200, 'A');
  for (const std::size_t file : {0U, 1U})
    write_at(locked.files()[file].fd.get(), 0, as_bytes(bytes), "file");
  int mixed = 0;
  int all = 0;
  disk.crashes(disk.events(), 100, 5, [&](const DiskState& state) {
    const bool a = state.at("a").starts_with("A");
    const bool b = state.at("b").starts_with("A");
    mixed += a != b ? 1 : 0;
    ++all;
  });
  CHECK(all == 4);
  CHECK(mixed == 2);
}

}  // namespace
}  // namespace masque::test
