// A token folder (first byte f), one that an interrupted run left (r), or a file of ids (b). Of
// folders: three uint16, the sizes of tokens.json or progress.json, of ids.bin and of ends.bin,
// then these files, then lengths.bin.
#include <array>
#include <filesystem>

#include "base/little_endian.hpp"
#include "fuzz/fuzz.hpp"
#include "records/token_folder.hpp"
#include "records/token_folder_writer.hpp"
#include "support/temp_folder.hpp"

namespace {

using namespace masque;  // NOLINT(google-build-using-namespace)
using records::TokenFolder;

const test::TempFolder& scratch() {
  static const test::TempFolder folder = test::TempFolder::in_memory();
  return folder;
}

/// The bytes up to a size that the input states; all that are left if there are fewer.
std::string_view take(std::string_view& input, std::size_t size) {
  const std::string_view part = input.substr(0, size);
  input.remove_prefix(part.size());
  return part;
}

/// Writes the files of an input to the folder `path`; empty ones only with `all`.
void write_files(std::string_view input, const std::string& path, const char* info_name, bool all) {
  std::array<std::uint16_t, 3> sizes{};
  const std::string_view header = take(input, sizeof sizes);
  std::memcpy(sizes.data(), header.data(), header.size());
  const auto write = [&](const char* name, std::string_view bytes) {
    if (all || !bytes.empty()) test::write_file(join(path, name), bytes);
  };
  write(info_name, take(input, sizes[0]));
  write(records::kTokenIdsName, take(input, sizes[1]));
  write(records::kTokenEndsName, take(input, sizes[2]));
  write(records::kTokenLengthsName, input);
}

std::string new_path() {
  std::string path = scratch() / "tokens";
  std::filesystem::remove_all(path);
  return path;
}

void read_all(const records::TokenSource& source, Index vocab_size) {
  std::vector<TokenId> ids;
  Index tokens = 0;
  for (Index i = 0; i < source.sequences(); ++i) {
    ids.resize(static_cast<std::size_t>(source.length(i)));
    source.read(source.begin(i), ids);
    tokens += std::ssize(ids);
    for (const TokenId id : ids) test::require(id >= 0 && id < vocab_size, "an id out of range");
  }
  test::require(tokens == source.tokens(), "lengths that are not the number of tokens");
}

void use_folder(std::string_view input) {
  const std::string path = new_path();
  write_files(input, path, records::kTokenInfoName, true);
  const auto folder = TokenFolder::open(path);
  const auto damage = folder->find_damage();
  if (damage) {
    test::require(test::wrong_message(*damage).empty(), "a message that is not safe to print");
  } else {
    read_all(*folder, folder->info().vocab_size);
  }
}

void use_progress(std::string_view input) {
  const std::string path = new_path();
  constexpr Index kVocabulary = 100;
  const auto open = [&](records::TokenFolderStart start) {
    return records::TokenFolderWriter(path, kVocabulary, std::string(32, 'a'), start);
  };
  {
    auto writer = open(records::TokenFolderStart::kNew);
    writer.add(std::array<TokenId, 3>{1, 2, 3});
    writer.add(std::array<TokenId, 1>{99});
    writer.save(3, "lines so far");
  }
  write_files(input, path, records::kTokenProgressName, false);
  std::filesystem::remove(join(path, records::kTokenLengthsName));
  {
    auto writer = open(records::TokenFolderStart::kResume);
    writer.add(std::array<TokenId, 2>{7, 8});
    writer.commit(writer.saved().lines + 1);
  }
  const auto folder = TokenFolder::open(path);
  test::require(!folder->find_damage(), "a folder that went on is damaged");
  read_all(*folder, kVocabulary);
}

void use_file(std::string_view input) {
  const std::string path = scratch() / "ids.bin";
  test::write_file(path, input);
  const auto source = records::open_token_file(path, 300);
  read_all(*source, 300);
  test::require(source->digest().size() == 32, "a digest of another size");
}

constexpr std::array<test::Kind, 3> kKinds{
    {{'f', use_folder}, {'r', use_progress}, {'b', use_file}}};

void check(std::string_view input) { test::use_by_kind(input, kKinds); }

}  // namespace

MASQUE_FUZZ_TARGET(check)
