// Two processes that write one token folder: between any two calls of the one the other runs.
#include <cerrno>
#include <functional>
#include <optional>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/file/output_folder.hpp"
#include "records/token_folder_writer.hpp"
#include "support/faults.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque::records {
namespace {

using test::contains;
using test::TempFolder;

const std::string kNothingThrown = "(nothing thrown)";
const std::string kSameTokenizer(32, 'a');

/// Runs `first`, and `second` before its call number `call`; false if it makes fewer calls.
bool run_between(int call, const std::function<void()>& first,
                 const std::function<void()>& second) {
  int calls = 0;
  bool inside = false;
  bool reached = false;
  const test::Faults faults([&](os::Call, std::string_view, std::size_t) {
    if (!inside && calls++ == call) {
      inside = reached = true;
      second();
      inside = false;
    }
    return std::optional<os::Fault>();
  });
  first();
  return reached;
}

void add_all(TokenFolderWriter& writer) {
  for (TokenId id = 0; id < 5; ++id) writer.add(std::vector<TokenId>{id, 7, id});
}

void write_whole(const std::string& path, TokenFolderStart start) {
  TokenFolderWriter writer(path, 100, kSameTokenizer, start);
  add_all(writer);
  writer.commit(5);
}

/// Whether a message says that another process came first.
bool is_second(const std::string& message) {
  return contains(message, "another process is writing it") ||
         contains(message, "is there, expected a new folder");
}

TEST_CASE("of two processes that write a token folder at once, one completes it") {
  constexpr auto kNew = TokenFolderStart::kNew, kResume = TokenFolderStart::kResume;
  for (const auto& [one, two] : {std::pair(kNew, kNew), std::pair(kNew, kResume),
                                 std::pair(kResume, kNew), std::pair(kResume, kResume)}) {
    int call = 0;
    for (bool reached = true; reached; ++call) {
      CAPTURE(call);
      const TempFolder folder;
      const std::string path = folder / "tokens";
      std::string first = kNothingThrown, second = kNothingThrown;
      reached = run_between(
          call, [&] { first = test::message_of([&] { write_whole(path, one); }); },
          [&] { second = test::message_of([&] { write_whole(path, two); }); });
      CHECK_FALSE(TokenFolder::open(path)->find_damage());
      CHECK(TokenFolder::open(path)->info().sequences == 5);
      CHECK(test::names_in(path).size() == 4);
      CHECK((first == kNothingThrown || second == kNothingThrown));
      for (const std::string& message : {first, second}) {
        CAPTURE(message);
        CHECK((message == kNothingThrown || is_second(message)));
      }
    }
    CHECK(call > 20);
  }
}

TEST_CASE("a process that comes first and is still at work keeps its token folder") {
  for (const TokenFolderStart start : {TokenFolderStart::kNew, TokenFolderStart::kResume}) {
    int kept = 0;
    bool reached = true;
    for (int call = 0; reached; ++call) {
      CAPTURE(call);
      const TempFolder folder;
      const std::string path = folder / "tokens";
      std::optional<TokenFolderWriter> other;
      std::string first;
      reached = run_between(
          call, [&] { first = test::message_of([&] { write_whole(path, start); }); },
          [&] {
            const auto begin = [&] {
              other.emplace(path, 100, kSameTokenizer, TokenFolderStart::kNew);
              add_all(*other);
              other->save(5, "text");
            };
            if (test::message_of(begin) != kNothingThrown) other.reset();
          });
      if (!other) continue;
      ++kept;
      CHECK(is_second(first));
      other->commit(5);
      CHECK_FALSE(TokenFolder::open(path)->find_damage());
    }
    CHECK(kept > 2);
  }
}

TEST_CASE("of two merges at once, one completes the folder") {
  const TempFolder folder;
  write_whole(folder / "a", TokenFolderStart::kNew);
  write_whole(folder / "b", TokenFolderStart::kNew);
  const std::string path = folder / "merged";
  int call = 0;
  for (bool reached = true; reached; ++call) {
    CAPTURE(call);
    remove_tree(open_folder(folder_of(path)).get(), base_name(path));
    std::string first = kNothingThrown, second = kNothingThrown;
    const auto merge = [&] { merge_token_folders({folder / "a", folder / "b"}, path); };
    reached = run_between(
        call, [&] { first = test::message_of(merge); }, [&] { second = test::message_of(merge); });
    CHECK_FALSE(TokenFolder::open(path)->find_damage());
    CHECK(TokenFolder::open(path)->info().sequences == 10);
    CHECK((first == kNothingThrown || second == kNothingThrown));
    for (const std::string& message : {first, second}) {
      CAPTURE(message);
      CHECK((message == kNothingThrown || is_second(message) || contains(message, ": is there")));
    }
  }
  CHECK(call > 20);
}

TEST_CASE("a process that fails leaves the folder of another one alone") {
  // Every call of the second one fails, once; the first one is at work.
  const TempFolder folder;
  const std::string path = folder / "tokens";
  TokenFolderWriter writer(path, 100, kSameTokenizer, TokenFolderStart::kNew);
  add_all(writer);
  writer.save(5, "text");
  for (int fails = 0, calls = 1; fails < calls; ++fails) {
    CAPTURE(fails);
    calls = 0;
    const test::Faults faults([&](os::Call, std::string_view, std::size_t) {
      return calls++ == fails ? std::optional(os::Fault{.error = EIO}) : std::nullopt;
    });
    CHECK(test::message_of([&] { write_whole(path, TokenFolderStart::kResume); }) !=
          kNothingThrown);
  }
  writer.commit(5);
  CHECK_FALSE(TokenFolder::open(path)->find_damage());
}

}  // namespace
}  // namespace masque::records
