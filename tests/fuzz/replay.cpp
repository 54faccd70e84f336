// Gives the inputs of a corpus to a fuzz target, in builds without the fuzzing engine, and then
// some changes of each, always the same ones.
//   fuzz_TARGET [--changes N] CORPUS.tar.gz|FOLDER|FILE…
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "fuzz/mutators/mutator.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" __attribute__((weak)) std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data,
                                                                     std::size_t size,
                                                                     std::size_t most,
                                                                     unsigned seed);

namespace {

constexpr unsigned kChanges = 16;         // of each input, if not said
constexpr std::size_t kMostBytes = 4096;  // of a changed one
constexpr std::size_t kBlock = 512;       // of a tar file

using Inputs = std::map<std::string, std::string>;

masque::test::Choices choices(1);

[[noreturn]] void stop(const std::string& path, const char* why) {
  std::fprintf(stderr, "%s: %s\n", path.c_str(), why);
  std::exit(1);
}

std::string unpacked(const std::string& path) {
  const gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) stop(path, "cannot be opened");
  std::string out;
  char buffer[1 << 14];
  int bytes = 0;
  while ((bytes = gzread(file, buffer, sizeof buffer)) > 0)
    out.append(buffer, static_cast<std::size_t>(bytes));
  if (bytes < 0 || gzclose(file) != Z_OK) stop(path, "is no gzip file");
  return out;
}

/// The regular files of a tar file as GNU tar writes it with --format=ustar.
void read_tar(const std::string& path, Inputs& inputs) {
  const std::string tar = unpacked(path);
  for (std::size_t at = 0; at + kBlock <= tar.size() && tar[at] != '\0';) {
    const std::string name = std::string(tar, at, 100).c_str();
    const std::size_t size = std::strtoull(std::string(tar, at + 124, 12).c_str(), nullptr, 8);
    const char type = tar[at + 156];
    at += kBlock;
    if (size > tar.size() - at) stop(path, "is cut");
    if (type == '0') inputs[name] = tar.substr(at, size);
    at += (size + kBlock - 1) / kBlock * kBlock;
  }
}

void read_input(const std::filesystem::path& path, Inputs& inputs) {
  std::ifstream in(path, std::ios::binary);
  inputs[path.filename()] = std::string{std::istreambuf_iterator<char>(in), {}};
}

/// Runs the target with a block of exactly this size, so that a sanitizer sees a read past it.
void run(const std::string& bytes) {
  const std::vector<std::uint8_t> exact(bytes.begin(), bytes.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

std::string changed(const std::string& input, unsigned seed) {
  std::vector<std::uint8_t> bytes(input.begin(), input.end());
  bytes.resize(std::max(input.size() + 8, kMostBytes));
  const auto mutate = LLVMFuzzerCustomMutator;
  bytes.resize(mutate == nullptr ? masque::test::mutate_bytes(input).copy(
                                       reinterpret_cast<char*>(bytes.data()), bytes.size())
                                 : mutate(bytes.data(), input.size(), bytes.size(), seed));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

/// The engine's changes of bytes, as far as a replay needs them.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most) {
  const auto byte = [] { return static_cast<std::uint8_t>(choices.below(256)); };
  if (size < most && (size == 0 || choices.one_in(3))) {
    const std::size_t at = choices.below(size + 1);
    std::memmove(data + at + 1, data + at, size - at);
    data[at] = byte();
    return size + 1;
  }
  if (size == 0) return 0;
  const std::size_t at = choices.below(size);
  if (choices.one_in(3)) {
    std::memmove(data + at, data + at + 1, size - at - 1);
    return size - 1;
  }
  data[at] = choices.one_in(2) ? byte() : static_cast<std::uint8_t>(data[at] ^ 1U << (byte() % 8));
  return size;
}

int main(int argc, char** argv) {
  Inputs inputs;
  unsigned changes = kChanges;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& path = arguments[i];
    if (path == "--changes" && i + 1 < arguments.size()) {
      changes = static_cast<unsigned>(std::strtoul(arguments[++i].c_str(), nullptr, 10));
    } else if (std::filesystem::is_directory(path)) {
      for (const auto& entry : std::filesystem::directory_iterator(path))
        read_input(entry.path(), inputs);
    } else if (path.ends_with(".tar.gz")) {
      read_tar(path, inputs);
    } else {
      read_input(path, inputs);
    }
  }
  for (const auto& [name, bytes] : inputs) {
    std::printf("%s: %zu bytes\n", name.c_str(), bytes.size());
    std::fflush(stdout);  // the last one named is the one that crashed
    run(bytes);
    for (unsigned seed = 0; seed < changes; ++seed) {
      choices = masque::test::Choices(seed);
      std::string other = bytes;
      for (unsigned i = 0; i <= seed % 4; ++i) other = changed(other, seed + i);
      run(other);
    }
  }
  if (inputs.empty()) std::fprintf(stderr, "no inputs in the corpus\n");
  return inputs.empty() ? 1 : 0;
}
