// Token folders: written, read, interrupted, merged, damaged; files of nanoGPT and llm.c.
#include "records/token_folder.hpp"

#include <unistd.h>

#include <csignal>
#include <filesystem>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/little_endian.hpp"
#include "records/binary_layout.hpp"
#include "records/token_folder_writer.hpp"
#include "support/child.hpp"
#include "support/faults.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque::records {
namespace {

using test::contains;
using test::message_of;
using test::read_file;
using test::TempFolder;
using test::write_file;
using Ids = std::vector<TokenId>;

const std::string kTokenizer(32, 'a');

std::vector<Ids> some_sequences(TokenId vocab_size) {
  return {{1, 2, 3}, {vocab_size - 1}, {0, 5, 5, 5}, {7, 8, 9}, {vocab_size / 2}};
}

void write(const std::string& path, const std::vector<Ids>& sequences, Index vocab_size) {
  TokenFolderWriter writer(path, vocab_size, kTokenizer, TokenFolderStart::kNew);
  for (const Ids& ids : sequences) writer.add(ids);
  writer.commit(std::ssize(sequences) + 2);
}

std::vector<Ids> all(const TokenSource& source) {
  std::vector<Ids> out;
  for (Index i = 0; i < source.sequences(); ++i) {
    Ids& ids = out.emplace_back(static_cast<std::size_t>(source.length(i)));
    source.read(source.begin(i), ids);
  }
  return out;
}

TEST_CASE("a token folder has what was written, in 2 or 4 bytes an id") {
  for (const Index vocab_size : {Index{100}, Index{65536}, Index{65537}, Index{200000}}) {
    const TempFolder folder;
    const std::string path = folder / "tokens";
    const auto sequences = some_sequences(static_cast<TokenId>(vocab_size));
    write(path, sequences, vocab_size);
    CHECK(test::names_in(path) == std::vector<std::string>{kTokenEndsName, kTokenIdsName,
                                                           kTokenLengthsName, kTokenInfoName});
    CHECK(is_token_folder(path));
    CHECK_FALSE(TokenFolder::open(path)->find_damage());
    const auto read = TokenFolder::open(path);
    CHECK(read->info().id_bytes == (vocab_size <= 65536 ? 2 : 4));
    CHECK(read->info().lines == 7);
    CHECK(read->tokens() == 12);
    CHECK(all(*read) == sequences);
    CHECK(read->lengths() == std::vector<LengthCount>{{1, 2, 1}, {3, 2, 0}, {4, 1, 2}});
    // The same as of a list in memory.
    TokenList list;
    for (const Ids& ids : sequences) list.add(ids);
    CHECK(all(list) == sequences);
    CHECK(list.lengths() == read->lengths());
    CHECK(list.digest() == read->digest());
    Ids part(5);
    read->read(2, part);
    CHECK(part == Ids{3, static_cast<TokenId>(vocab_size) - 1, 0, 5, 5});
  }
}

TEST_CASE("digests know where sequences begin") {
  TokenList one, two;
  one.add(Ids{1, 2});
  one.add(Ids{3});
  two.add(Ids{1});
  two.add(Ids{2, 3});
  CHECK(one.digest() != two.digest());
}

TEST_CASE("an interrupted folder goes on from what was saved, and ends the same") {
  const TempFolder folder;
  const auto sequences = some_sequences(100);
  write(folder / "whole", sequences, 100);
  const std::string path = folder / "part";
  {
    TokenFolderWriter writer(path, 100, kTokenizer, TokenFolderStart::kNew);
    writer.add(sequences[0]);
    writer.add(sequences[1]);
    writer.save(3, "text so far");
    writer.add(sequences[3]);  // not saved
    CHECK(contains(
        message_of([&] { TokenFolderWriter(path, 100, kTokenizer, TokenFolderStart::kResume); }),
        "another process is writing it"));
  }
  CHECK_FALSE(is_token_folder(path));
  CHECK(contains(message_of([&] { TokenFolder::open(path); }), "that is not complete"));
  CHECK(contains(
      message_of([&] { TokenFolderWriter(path, 100, kTokenizer, TokenFolderStart::kNew); }),
      "is there, expected a new folder"));
  CHECK(contains(message_of([&] {
                   TokenFolderWriter(path, 100, std::string(32, 'b'), TokenFolderStart::kResume);
                 }),
                 "another tokenizer"));
  {
    // What was written but not saved goes away.
    write_file(path + "/ids.bin", read_file(path + "/ids.bin") + "torn");
    TokenFolderWriter writer(path, 100, kTokenizer, TokenFolderStart::kResume);
    CHECK(writer.saved().lines == 3);
    CHECK(writer.saved().text == "text so far");
    CHECK(writer.saved().tokens == 4);
    for (std::size_t i = 2; i < sequences.size(); ++i) writer.add(sequences[i]);
    writer.commit(7);
  }
  for (const std::string& name : test::names_in(path))
    CHECK(read_file(path + "/" + name) == read_file(folder / "whole/" + name));
  CHECK(test::names_in(path).size() == 4);
  // A complete folder is compared with what is added, and stays.
  for (const Index lines : {Index{7}, Index{8}}) {
    TokenFolderWriter writer(path, 100, kTokenizer, TokenFolderStart::kResume);
    CHECK(writer.complete());
    CHECK(writer.saved().lines == 0);
    for (const auto& sequence : sequences) writer.add(sequence);
    writer.save(3, "text so far");
    const std::string message = message_of([&] { writer.commit(lines); });
    CHECK(contains(message, lines == 7 ? "(nothing thrown)" : "holds the ids of another text"));
  }
  CHECK(TokenFolder::open(path)->info().lines == 7);
  CHECK(test::names_in(path).size() == 4);
  // Other options, and ids that were changed since.
  {
    TokenFolderWriter writer(folder / "options", 100, kTokenizer, TokenFolderStart::kNew,
                             "one way");
    writer.add(Ids{1, 2});
    writer.save(1, {});
  }
  CHECK(contains(message_of([&] {
                   TokenFolderWriter(folder / "options", 100, kTokenizer, TokenFolderStart::kResume,
                                     "another way");
                 }),
                 "written with the options 'one way', expected 'another way'"));
  write_file(folder / "options/ids.bin", std::string_view("\1\0\3\0", 4));
  CHECK(contains(message_of([&] {
                   TokenFolderWriter(folder / "options", 100, kTokenizer, TokenFolderStart::kResume,
                                     "one way");
                 }),
                 "other ids than those that were saved"));
  // Fewer ids than were saved.
  TokenFolderWriter(folder / "short", 100, kTokenizer, TokenFolderStart::kNew).add(Ids{1});
  {
    TokenFolderWriter writer(folder / "less", 100, kTokenizer, TokenFolderStart::kNew);
    writer.add(Ids{1, 2});
    writer.save(1, {});
  }
  write_file(folder / "less/ids.bin", "x");
  CHECK(contains(message_of([&] {
                   TokenFolderWriter(folder / "less", 100, kTokenizer, TokenFolderStart::kResume);
                 }),
                 "fewer ids than progress.json says"));
  CHECK(contains(message_of([&] {
                   test::write_file(folder / "other/x", "");
                   TokenFolderWriter(folder / "other", 100, kTokenizer, TokenFolderStart::kResume);
                 }),
                 "has no progress.json"));
}

TEST_CASE("an interrupted folder goes on from no flipped bit") {
  const TempFolder folder;
  const auto sequences = some_sequences(100);
  write(folder / "whole", sequences, 100);
  {
    TokenFolderWriter writer(folder / "part", 100, kTokenizer, TokenFolderStart::kNew, "settings");
    for (std::size_t i = 0; i < 3; ++i) writer.add(sequences[i]);
    writer.save(3, "text");
  }
  int refused = 0;
  for (const std::string& name : test::names_in(folder / "part")) {
    const std::string good = read_file(folder / "part/" + name);
    for (std::size_t at = 0; at < good.size(); ++at) {
      std::filesystem::remove_all(folder / "bad");
      std::filesystem::copy(folder / "part", folder / "bad");
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << at % 8));
      write_file(folder / "bad/" + name, bad);
      CAPTURE(name);
      CAPTURE(at);
      const std::string message = message_of([&] {
        TokenFolderWriter writer(folder / "bad", 100, kTokenizer, TokenFolderStart::kResume,
                                 "settings");
        CHECK(writer.saved().lines == 3);
        CHECK(writer.saved().text == "text");
        for (std::size_t i = 3; i < sequences.size(); ++i) writer.add(sequences[i]);
        writer.commit(7);
      });
      if (message != "(nothing thrown)") {
        ++refused;
        CHECK(contains(message, "/bad"));
        continue;
      }
      for (const std::string& file : test::names_in(folder / "whole"))
        CHECK(read_file(folder / "bad/" + file) == read_file(folder / "whole/" + file));
    }
  }
  CHECK(refused > 200);
}

TEST_CASE("nothing to write leaves nothing") {
  const TempFolder folder;
  TokenFolderWriter writer(folder / "none", 100, kTokenizer, TokenFolderStart::kNew);
  CHECK(contains(message_of([&] { writer.commit(0); }), "no tokens, expected a text"));
  CHECK(folder.names().empty());
}

TEST_CASE("a merge goes on where a killed one stopped, and only the same one") {
  const TempFolder folder;
  const auto sequences = some_sequences(100);
  write(folder / "a", {sequences[0], sequences[1]}, 100);
  write(folder / "b", {sequences[2]}, 100);
  write(folder / "c", {sequences[3], sequences[4]}, 100);
  const std::vector<std::string> parts{folder / "a", folder / "b", folder / "c"};
  merge_token_folders(parts, folder / "whole");
  test::Child child([&](const std::function<void()>& ready) {
    int renames = 0;
    const test::Faults faults([&](os::Call call, std::string_view, std::size_t) {
      // What was saved at the beginning and of `a` is there; that of `b` never comes.
      if (call == os::Call::kRename && ++renames == 3) {
        ready();
        ::pause();
      }
      return std::optional<os::Fault>();
    });
    merge_token_folders(parts, folder / "merged");
    return 0;
  });
  CHECK(contains(message_of([&] { merge_token_folders(parts, folder / "merged"); }),
                 "another process is writing it"));
  child.kill(SIGKILL);
  child.wait();
  CHECK_FALSE(is_token_folder(folder / "merged"));
  CHECK(contains(message_of([&] {
                   merge_token_folders({folder / "a", folder / "b"}, folder / "merged");
                 }),
                 "written with the options 'merge "));
  merge_token_folders(parts, folder / "merged");
  for (const char* name : {kTokenIdsName, kTokenEndsName, kTokenLengthsName, kTokenInfoName})
    CHECK(read_file(folder / "merged/" + name) == read_file(folder / "whole/" + name));
  CHECK(test::names_in(folder / "merged") == test::names_in(folder / "whole"));
}

TEST_CASE("merged folders are that of the whole text") {
  const TempFolder folder;
  const auto sequences = some_sequences(100);
  write(folder / "whole", sequences, 100);
  write(folder / "a", {sequences[0], sequences[1]}, 100);
  write(folder / "b", {sequences[2]}, 100);
  write(folder / "c", {sequences[3], sequences[4]}, 100);
  merge_token_folders({folder / "a", folder / "b", folder / "c"}, folder / "merged");
  for (const char* name : {kTokenIdsName, kTokenEndsName, kTokenLengthsName})
    CHECK(read_file(folder / "merged/" + name) == read_file(folder / "whole/" + name));
  CHECK(TokenFolder::open(folder / "merged")->digest() ==
        TokenFolder::open(folder / "whole")->digest());
  CHECK(TokenFolder::open(folder / "merged")->info().lines == 11);
  TokenFolderWriter other(folder / "d", 100, std::string(32, 'b'), TokenFolderStart::kNew);
  other.add(Ids{1});
  other.commit(1);
  CHECK(contains(message_of([&] {
                   merge_token_folders({folder / "a", folder / "d"}, folder / "e");
                 }),
                 "d: made with another tokenizer than"));
  CHECK(contains(message_of([&] {
                   merge_token_folders({folder / "a", folder / "b"}, folder / "merged");
                 }),
                 "is there"));
  // A part that is damaged: no new folder.
  std::string ids = read_file(folder / "b/ids.bin");
  ids[1] = '\x7f';
  write_file(folder / "b/ids.bin", ids);
  CHECK(contains(message_of([&] {
                   merge_token_folders({folder / "a", folder / "b"}, folder / "e");
                 }),
                 "ids.bin: id 32512 of token 1, expected an id from 0 to 99"));
  CHECK_FALSE(exists(folder / "e"));
}

TEST_CASE("a merge refuses every flipped bit of a part, or none of it counts") {
  const TempFolder folder;
  const auto sequences = some_sequences(100);
  write(folder / "a", {sequences[0], sequences[1]}, 100);
  write(folder / "b", {sequences[2], sequences[3]}, 100);
  const std::vector<std::string> parts{folder / "a", folder / "b"};
  merge_token_folders(parts, folder / "whole");
  int refused = 0, harmless = 0;
  for (const std::string& name : test::names_in(folder / "b")) {
    const std::string path = folder / "b/" + name;
    const std::string good = read_file(path);
    for (std::size_t at = 0; at < good.size(); ++at) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << at % 8));
      write_file(path, bad);
      CAPTURE(name);
      CAPTURE(at);
      const std::string message =
          message_of([&] { merge_token_folders(parts, folder / "merged"); });
      if (message != "(nothing thrown)") {
        ++refused;
        CHECK(contains(message, "/b"));
        CHECK_FALSE(exists(folder / "merged"));
        continue;
      }
      ++harmless;
      for (const std::string& file : test::names_in(folder / "whole"))
        CHECK(read_file(folder / "merged/" + file) == read_file(folder / "whole/" + file));
      std::filesystem::remove_all(folder / "merged");
    }
    write_file(path, good);
  }
  CHECK(refused > 300);
  CHECK(harmless < 20);  // letters of the name of the digest
}

/// A folder of the sequences, damaged: what find_damage() and open() say.
struct Damage {
  TempFolder folder;
  std::string path = folder / "tokens";

  Damage() { write(path, some_sequences(100), 100); }
  void set(const char* name, std::size_t at, std::string_view bytes) const {
    std::string text = read_file(join(path, name));
    text.replace(at, bytes.size(), bytes);
    write_file(join(path, name), text);
  }
  void set_info(std::string_view from, std::string_view to) const {
    std::string text = read_file(join(path, kTokenInfoName));
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    write_file(join(path, kTokenInfoName), text.replace(at, from.size(), to));
  }
  std::string found() const { return TokenFolder::open(path)->find_damage().value_or("nothing"); }
  std::string refused() const {
    return message_of([&] { TokenFolder::open(path); });
  }
};

TEST_CASE("damaged folders: which file, and what is wrong") {
  using namespace std::string_view_literals;
  {
    const Damage d;
    d.set(kTokenIdsName, 4, "\x64\x00"sv);
    CHECK(contains(d.found(), "ids.bin: id 100 of token 3, expected an id from 0 to 99"));
    Ids ids(3);
    CHECK(contains(message_of([&] { TokenFolder::open(d.path)->read(0, ids); }),
                   "id 100 of token 3"));
  }
  {
    const Damage d;
    d.set(kTokenIdsName, 4, "\x04\x00"sv);  // another good id
    CHECK(contains(d.found(), "tokens.json: the digest is not that of the ids"));
  }
  {
    const Damage d;
    d.set(kTokenEndsName, 0, "\x04"sv);
    CHECK(contains(d.found(), "ends.bin: sequence 2 of 0 tokens, expected 1 to 4"));
    CHECK(contains(message_of([&] { TokenFolder::open(d.path)->length(1); }),
                   "sequence 2 of 0 tokens"));
  }
  {
    const Damage d;
    d.set(kTokenEndsName, 7, "\x01"sv);
    CHECK(contains(d.found(), "ends.bin: sequence 1 of 12 tokens, expected 1 to 4"));
  }
  {
    const Damage d;
    d.set(kTokenEndsName, 8 * 4, "\x0B"sv);  // the last one ends too early
    CHECK(contains(d.refused(), "ends.bin: the last sequence ends after token 11, expected 12"));
    d.set(kTokenEndsName, 8 * 4, "\x0D"sv);
    CHECK(contains(d.refused(), "ends.bin: the last sequence ends after token 13, expected 12"));
  }
  {
    const Damage d;
    d.set(kTokenLengthsName, 24, "\x02"sv);  // length 3 → 2
    CHECK(contains(d.refused(), "lengths.bin: 72 bytes of 5 sequences and 10 tokens"));
    d.set(kTokenLengthsName, 8, "\x00"sv);
    CHECK(contains(d.refused(), "lengths.bin: row 1: expected a length above 0"));
  }
  {
    const Damage d;
    d.set(kTokenLengthsName, 16, "\x04"sv);  // the first sequence of length 1
    CHECK(contains(d.found(), "lengths.bin: other lengths than those of the sequences"));
  }
  {
    const Damage d;
    std::filesystem::resize_file(join(d.path, kTokenIdsName), 23);
    CHECK(contains(d.refused(), "ids.bin: 23 bytes, expected 24"));
  }
  {
    const Damage d;
    const auto open = TokenFolder::open(d.path);
    std::filesystem::resize_file(join(d.path, kTokenIdsName), 4);  // while it is read
    Ids ids(12);
    CHECK(contains(message_of([&] { open->read(0, ids); }), "ids.bin"));
  }
  const std::vector<std::pair<std::string_view, std::string_view>> changes{
      {"\"version\": 1", "\"version\": 2"},
      {"masque tokens", "another"},
      {"\"id_bytes\": 2", "\"id_bytes\": 3"},
      {"\"vocab_size\": 100", "\"vocab_size\": 70000"},
      {"\"vocab_size\": 100", "\"vocab_size\": 0"},
      {"\"sequences\": 5", "\"sequences\": 50"},
      {"\"tokens\": 12", "\"tokens\": -12"},
      {"\"tokens\": 12", "\"tokens\": 9223372036854775807"},
      {"\"lines\": 7", "\"lines\": null"},
      {"\"digest\": \"", "\"digest\": \"x"},
      {"\"tokenizer\": \"", "\"other\": \""}};
  for (const auto& [from, to] : changes) {
    const Damage d;
    d.set_info(from, to);
    CAPTURE(to);
    CHECK(d.refused() != "(nothing thrown)");
  }
}

TEST_CASE("more tokens than memory: holes of 20 GB are read where they are needed") {
  const TempFolder folder;
  const std::string path = folder / "tokens";
  constexpr Index kSequences = 100000;
  constexpr Index kLength = 100000;
  {
    TokenFolderWriter writer(path, 100, kTokenizer, TokenFolderStart::kNew);
    writer.add(Ids{1});
    writer.commit(1);
  }
  std::string ends, lengths;
  for (Index i = 1; i <= kSequences; ++i) append_number(ends, i * kLength);
  append_number(lengths, kLength, kSequences, Index{0});
  write_file(join(path, kTokenEndsName), ends);
  write_file(join(path, kTokenLengthsName), lengths);
  std::filesystem::resize_file(join(path, kTokenIdsName),
                               static_cast<std::uintmax_t>(2 * kSequences * kLength));
  TokenFolderInfo info = TokenFolderInfo::read(path);
  info.sequences = kSequences;
  info.tokens = kSequences * kLength;
  write_file(join(path, kTokenInfoName), info.json());
  const auto open = TokenFolder::open(path);
  Ids ids(static_cast<std::size_t>(kLength));
  for (const Index i : {Index{0}, Index{77777}, kSequences - 1}) {
    CHECK(open->length(i) == kLength);
    open->read(open->begin(i), ids);
    // The first token of the file is that of the folder before.
    CHECK(ids == [&] {
      Ids out(static_cast<std::size_t>(kLength));
      out[0] = i == 0 ? 1 : 0;
      return out;
    }());
  }
}

TEST_CASE("files of nanoGPT and llm.c have ids and no boundaries") {
  const TempFolder folder;
  const Ids ids{5, 6, 7, 99, 0};
  for (const int bytes : {2, 4}) {
    std::string plain;
    append_binary(ids, bytes, plain);
    const Index vocab_size = bytes == 2 ? 100 : 100000;
    write_file(folder / "nano.bin", plain);
    write_file(folder / "llm.bin", llmc_header(bytes, 5, "llm.bin") + plain);
    for (const char* name : {"nano.bin", "llm.bin"}) {
      CHECK(is_token_file(folder / name));
      const auto source = open_token_file(folder / name, vocab_size);
      CHECK_FALSE(source->has_boundaries());
      CHECK(all(*source) == std::vector<Ids>{ids});
      CHECK(source->digest() == open_token_file(folder / "nano.bin", vocab_size)->digest());
      Ids out(5);
      CHECK(contains(
          message_of(
              [&] { open_token_file(folder / name, bytes == 2 ? 99 : 70000)->read(0, out); }),
          bytes == 2 ? "id 99 of token 4, expected an id from 0 to 98" : "(nothing thrown)"));
    }
    write_file(folder / "llm.bin", llmc_header(bytes, 6, "llm.bin") + plain);
    CHECK(contains(message_of([&] { open_token_file(folder / "llm.bin", vocab_size); }),
                   "expected 6 ids of"));
    write_file(folder / "nano.bin", plain + "x");
    CHECK(contains(message_of([&] { open_token_file(folder / "nano.bin", vocab_size); }),
                   "bytes of ids, expected ids of"));
  }
  write_file(folder / "pytorch_model.bin", "PK\x03\x04 and more");
  CHECK_FALSE(is_token_file(folder / "pytorch_model.bin"));
  CHECK_FALSE(is_token_file(folder / "missing.bin"));
  write_file(folder / "text.bin", "words of a text\n");
  CHECK_FALSE(is_token_file(folder / "text.bin"));
  // The last ids of a short file count in its digest, too.
  std::string long_file;
  append_binary(Ids(1500, 7), 2, long_file);
  write_file(folder / "long.bin", long_file);
  const std::string digest = open_token_file(folder / "long.bin", 100)->digest();
  long_file[2998] = 8;
  write_file(folder / "long.bin", long_file);
  CHECK(open_token_file(folder / "long.bin", 100)->digest() != digest);
  write_file(folder / "text", "words");
  CHECK_FALSE(is_token_file(folder / "text"));
}

}  // namespace
}  // namespace masque::records
