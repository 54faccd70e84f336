// Every system call of a write is made to fail, one by one and from each on: the output is then old
// or new as a whole, the failure is reported, and nothing is left lying about.
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error.hpp"
#include "store/checkpoint_writer.hpp"
#include "support/faults.hpp"
#include "support/make_safetensors.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque::store {
namespace {

using os::Call;
using test::TempFolder;

/// Path → content of every file below a folder ("/" for folders); empty if it does not exist.
using Tree = std::map<std::string, std::string>;

Tree tree_of(const std::string& path) {
  namespace fs = std::filesystem;
  Tree tree;
  if (!fs::exists(path)) return tree;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    const std::string name = fs::relative(entry.path(), path);
    tree[name] = entry.is_directory() ? "/" : test::read_file(entry.path());
  }
  return tree;
}

/// What goes wrong.
struct Disturbance {
  int error = 0;          ///< the call fails so …
  std::size_t count = 0;  ///< … or moves only so many bytes
  bool half = false;      ///< … or half of them
  int times = 1;          ///< so many calls in a row; 0 for all that follow
  bool must_succeed = false;
};

bool is_transfer(Call call) {
  return call == Call::kPread || call == Call::kRead || call == Call::kWrite ||
         call == Call::kPwrite || call == Call::kCopyRange;
}

/// True if the disturbance can happen to this call at all.
bool applies(const Disturbance& disturbance, Call call, std::size_t size) {
  if (disturbance.error == EXDEV) return call == Call::kCopyRange;
  if (disturbance.error == EINTR) return is_transfer(call) || call == Call::kAllocate;
  if (disturbance.error != 0) return true;
  return is_transfer(call) && size > 1;
}

std::vector<Disturbance> disturbances() {
  std::vector<Disturbance> all;
  for (const int times : {1, 0}) {
    for (const int error : {EIO, ENOSPC, EDQUOT, EACCES}) all.push_back({error, 0, false, times});
    all.push_back({EXDEV, 0, false, times, true});
    all.push_back({0, 1, false, times, true});
    all.push_back({0, 0, true, times, true});
  }
  all.push_back({EINTR, 0, false, 1, true});
  all.push_back({EINTR, 0, false, 3, true});
  return all;
}

/// A write, and the place that it changes.
struct Scenario {
  std::function<void()> prepare;  ///< makes the state before
  std::function<void()> write;
  std::string place;  ///< folder in which only the target may be
};

struct Run {
  bool reached = false;  ///< the k-th call was made
  std::set<Call> hit;
  std::string error;  ///< message of the InputError; empty if none
};

Run run_with(const Scenario& scenario, const Disturbance& disturbance, int k) {
  Run run;
  int calls = 0;
  const test::Faults faults(
      [&](Call call, std::string_view, std::size_t size) -> std::optional<os::Fault> {
        if (!applies(disturbance, call, size)) return std::nullopt;
        ++calls;
        if (calls < k || (disturbance.times > 0 && calls >= k + disturbance.times)) return {};
        run.reached = true;
        run.hit.insert(call);
        const std::size_t count = disturbance.half ? size / 2 : disturbance.count;
        return os::Fault{.error = disturbance.error, .count = count};
      });
  try {
    scenario.write();
  } catch (const InputError& error) {
    run.error = error.what();
  }
  return run;
}

/// A best-effort removal may fail without a word, and a replaced folder is kept if the exchange
/// cannot be made durable; the next run then removes what was left.
bool may_leave(const Run& run, const Disturbance& disturbance) {
  if (test::contains(run.error, "the old folder is kept as")) return run.hit.contains(Call::kSync);
  if (disturbance.times == 0) return run.hit.count(Call::kUnlink) + run.hit.count(Call::kRmdir) > 0;
  const Call hit = *run.hit.begin();
  return run.error.empty() && (hit == Call::kUnlink || hit == Call::kRmdir || hit == Call::kOpen);
}

/// Whether an entry is the data file of a bundle without its index, which is nothing.
bool is_orphan(const std::string& name, const Tree& tree) {
  const std::size_t end = name.rfind(".data-00000-of-00001");
  return end != std::string::npos && !tree.contains(name.substr(0, end) + ".index");
}

/// Runs a scenario with every disturbance at every call. Returns the number of disturbed runs.
int sweep(const Scenario& scenario) {
  scenario.prepare();
  const Tree before = tree_of(scenario.place);
  scenario.write();
  const Tree after = tree_of(scenario.place);
  REQUIRE(before != after);
  int runs = 0;
  for (const Disturbance& disturbance : disturbances()) {
    for (int k = 1;; ++k, ++runs) {
      scenario.prepare();
      const Run run = run_with(scenario, disturbance, k);
      const std::string what = fmt::format(
          "errno {}, count {}{}, call {} ({}), times {}: '{}'", disturbance.error,
          disturbance.count, disturbance.half ? " half" : "", k,
          run.hit.empty() ? -1 : static_cast<int>(*run.hit.begin()), disturbance.times, run.error);
      CAPTURE(what);
      Tree now = tree_of(scenario.place);
      const bool left = std::erase_if(now, [&](const auto& entry) {
                          return entry.first.find(".masque-tmp") != std::string::npos ||
                                 is_orphan(entry.first, now);
                        }) > 0;
      REQUIRE((now == before || now == after));
      if (!run.reached) {
        REQUIRE(now == after);
        REQUIRE(run.error.empty());
        REQUIRE_FALSE(left);
        break;
      }
      if (now == before) REQUIRE_FALSE(run.error.empty());
      if (disturbance.must_succeed) REQUIRE((now == after && run.error.empty() && !left));
      if (!left) continue;
      REQUIRE(may_leave(run, disturbance));
      scenario.write();
      REQUIRE(tree_of(scenario.place) == after);
    }
  }
  return runs;
}

/// Weights from all kinds of sources.
struct Material {
  explicit Material(const TempFolder& folder) {
    test::write_file(folder / "in/source",
                     test::make_safetensors({test::bytes_tensor("a", std::string(100, 'a')),
                                             test::bytes_tensor("b", std::string(50, 'b'))}));
    source = open_checkpoint(folder / "in/source");
    const auto fill = [](std::uint64_t offset, MutableBytes out) {
      for (std::byte& byte : out) byte = static_cast<std::byte>(offset++);
    };
    weights = copy_of(source->files()[0]);
    weights.name = "model.safetensors";
    const TensorInfo info{.name = "c", .dtype = DType::kU8, .shape = {30}};
    weights.tensors.push_back({info, Computed{.fill = fill, .chunk_bytes = 16}});
  }

  std::optional<Checkpoint> source;
  OutputWeights weights;
};

TEST_CASE("a file that is replaced is old or new whatever call fails") {
  const TempFolder folder = TempFolder::in_memory();
  const Material material(folder);
  const int runs = sweep({
      .prepare = [&] { test::write_file(folder / "out/f", "old content"); },
      .write = [&] { write_checkpoint_file(folder / "out/f", material.weights, {.threads = 1}); },
      .place = folder / "out",
  });
  CHECK(runs > 150);
}

TEST_CASE("a new file is whole or not there whatever call fails") {
  const TempFolder folder = TempFolder::in_memory();
  const Material material(folder);
  test::write_file(folder / "out/neighbour", "stays");
  const int runs = sweep({
      .prepare = [&] { std::filesystem::remove(folder / "out/f"); },
      .write = [&] { write_checkpoint_file(folder / "out/f", material.weights, {.threads = 1}); },
      .place = folder / "out",
  });
  CHECK(runs > 150);
}

TEST_CASE("a new bundle has both files or none whatever call fails") {
  const TempFolder folder = TempFolder::in_memory();
  const Material material(folder);
  OutputWeights weights = material.weights;
  weights.writer = "tensorflow";
  test::write_file(folder / "out/neighbour", "stays");
  const int runs = sweep({
      .prepare =
          [&] {
            std::filesystem::remove_all(folder / "out");
            test::write_file(folder / "out/neighbour", "stays");
          },
      .write =
          [&] {
            std::filesystem::remove(folder / "out/f.index");  // it is never written over
            write_checkpoint_file(folder / "out/f.index", weights, {.threads = 1});
          },
      .place = folder / "out",
  });
  CHECK(runs > 250);
}

/// A folder of two weight files, a copy and a text in a sub-folder.
void write_folder(const TempFolder& folder, const Material& material, Existing existing) {
  OutputWeights second = material.weights;
  second.name = "second.safetensors";
  const InputFile& source = material.source->files()[0].file;
  const std::vector<OutputExtra> extras = {{"sub/copy", CopyFrom{&source, 0}, source.size()},
                                           {"config.json", Literal{"{}"}, 2}};
  write_checkpoint_folder(folder / "out/d", {material.weights, second}, extras,
                          {.threads = 1, .existing = existing});
}

TEST_CASE("a new folder is complete or not there whatever call fails") {
  const TempFolder folder = TempFolder::in_memory();
  const Material material(folder);
  test::write_file(folder / "out/neighbour", "stays");
  const int runs = sweep({
      .prepare = [&] { std::filesystem::remove_all(folder / "out/d"); },
      .write = [&] { write_folder(folder, material, Existing::kRefuse); },
      .place = folder / "out",
  });
  CHECK(runs > 300);
}

TEST_CASE("a folder that is replaced is old or new as a whole whatever call fails") {
  const TempFolder folder = TempFolder::in_memory();
  const Material material(folder);
  const int runs = sweep({
      .prepare =
          [&] {
            std::filesystem::remove_all(folder / "out/d");
            test::write_file(folder / "out/d/config.json", "{\"old\":1}");
            test::write_file(folder / "out/d/sub/copy", "old copy");
            test::write_file(folder / "out/d/sub/deep/old.safetensors", "old weights");
          },
      .write = [&] { write_folder(folder, material, Existing::kReplace); },
      .place = folder / "out",
  });
  CHECK(runs > 300);
}

}  // namespace
}  // namespace masque::store
