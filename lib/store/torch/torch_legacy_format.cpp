// PyTorch's files before 1.6: five pickles, then the storages. Changed ones become zip files, but
// in place.
#include <algorithm>
#include <cstring>
#include <span>
#include <unordered_map>

#include <fmt/format.h>

#include "base/checked.hpp"
#include "store/format.hpp"
#include "store/torch/torch_state.hpp"

namespace masque::store {

namespace {

using namespace std::string_view_literals;

/// Two pickles of one number each.
constexpr std::string_view kMagic =
    "\x80\x02\x8A\x0A\x6C\xFC\x9C\x46\xF9\x20\x6A\xA8\x50\x19\x2E"sv;
constexpr std::string_view kProtocol1001 = "\x80\x02\x4D\xE9\x03\x2E"sv;

constexpr std::size_t kPersistentItems = 6;
constexpr std::uint64_t kFirstBytes = 1 << 16;

class LegacyFile {
 public:
  explicit LegacyFile(const InputFile& file) : file_(file) {}

  Checked<FileContent> read() {
    if (auto broken = read_header()) return *std::move(broken);
    TorchPlaces places;
    places.pickle_begin = at_;
    Pickle pickle;
    if (auto broken = read_one(pickle)) return *std::move(broken);
    const std::uint64_t keys_at = at_;
    Pickle keys;
    if (auto broken = read_one(keys)) return *std::move(broken);
    if (auto broken = read_storages(pickle, keys, keys_at, places.begin)) return *std::move(broken);
    return torch_content(pickle, places);
  }

 private:
  /// The next pickle: its length is known only from reading it.
  std::optional<Violation> read_one(Pickle& out) {
    const std::uint64_t left = file_.size() - at_;
    const std::uint64_t most = std::min(left, PickleLimits{}.bytes);
    for (std::uint64_t size = std::min(most, kFirstBytes);; size = std::min(most, 4 * size)) {
      std::string data(size, '\0');
      file_.read(at_, std::as_writable_bytes(std::span(data)));
      auto read = read_pickle(std::move(data), at_, kPersistentItems);
      if (auto* pickle = std::get_if<Pickle>(&read)) {
        at_ += pickle->end;
        out = std::move(*pickle);
        return std::nullopt;
      }
      auto& violation = std::get<Violation>(read);
      if (violation.rule != "pickle-short" || size == left) return std::move(violation);
      if (size == most) {
        return Violation{"limit-pickle", fmt::format("a pickle of more than {} bytes", most), "",
                         at_};
      }
    }
  }

  std::optional<Violation> read_header() {
    at_ = kMagic.size();
    std::string version(std::min<std::uint64_t>(kProtocol1001.size(), file_.size() - at_), '\0');
    file_.read(at_, std::as_writable_bytes(std::span(version)));
    if (version != kProtocol1001) {
      return Violation{"legacy-header", "a version of the format other than 1001", "", at_};
    }
    at_ += kProtocol1001.size();
    const std::uint64_t system_at = at_;
    Pickle system;
    if (auto broken = read_one(system)) return broken;
    const PickleId little = entry(system, "little_endian");
    if (little != system.top && system.kind(little) == PickleKind::kBool &&
        system.values[little].number == 1)
      return std::nullopt;
    return Violation{"legacy-header", "not marked as little-endian: big-endian files are not read",
                     "", system_at};
  }

  /// The value of a key; the dict itself if it has none or is none.
  static PickleId entry(const Pickle& pickle, std::string_view key) {
    if (pickle.kind(pickle.top) != PickleKind::kDict) return pickle.top;
    const auto items = pickle.items(pickle.top);
    for (std::size_t i = 0; i < items.size(); i += 2) {
      if (pickle.kind(items[i]) == PickleKind::kText && pickle.text(items[i]) == key)
        return items[i + 1];
    }
    return pickle.top;
  }

  /// For every key the number of elements, and the elements.
  std::optional<Violation> read_storages(const Pickle& pickle, const Pickle& keys,
                                         std::uint64_t keys_at, std::vector<std::uint64_t>& begin) {
    const auto fail = [&](std::string message, std::uint64_t at) {
      return Violation{"legacy-storages", std::move(message), "", at};
    };
    std::unordered_map<std::string_view, std::size_t> missing;
    for (std::size_t i = 0; i < pickle.storages.size(); ++i)
      missing.emplace(pickle.storages[i].key, i);
    begin.assign(pickle.storages.size(), 0);
    if (keys.kind(keys.top) != PickleKind::kList) return fail("no list of storages", keys_at);
    for (const PickleId id : keys.items(keys.top)) {
      const bool is_text = keys.kind(id) == PickleKind::kText;
      const auto found = is_text ? missing.find(keys.text(id)) : missing.end();
      if (found == missing.end())
        return fail("a storage that no tensor has, or that is listed twice", keys_at);
      const PickleStorage& storage = pickle.storages[found->second];
      std::uint64_t numel = 0;
      if (file_.size() - at_ < sizeof numel) return fail("the file ends before its storages", at_);
      file_.read(at_, std::as_writable_bytes(std::span(&numel, 1)));
      if (numel != storage.numel) {
        return fail(fmt::format("{} elements, the pickle says {}", numel, storage.numel), at_);
      }
      at_ += sizeof numel;
      if (file_.size() - at_ < storage.bytes()) {
        return fail(
            fmt::format("{} bytes of data, expected {}", file_.size() - at_, storage.bytes()), at_);
      }
      begin[found->second] = at_;
      at_ += storage.bytes();
      missing.erase(found);
    }
    if (!missing.empty()) return fail("tensors with storages that are not listed", keys_at);
    if (at_ == file_.size()) return std::nullopt;
    return fail(fmt::format("{} bytes after the last storage", file_.size() - at_), at_);
  }

  const InputFile& file_;
  std::uint64_t at_ = 0;
};

/// Whether `file`, whose first bytes are `first`, starts as one: with the pickle of the magic
/// number.
bool is_torch_legacy(const InputFile& /*file*/, Bytes first) {
  return first.size() >= kMagic.size() &&
         std::memcmp(first.data(), kMagic.data(), kMagic.size()) == 0;
}

/// Reads the pickles of `file`, which is_torch_legacy, and the lengths of the storages. Rules:
/// those of pickles, of torch_content, and "legacy-header", "legacy-storages". Memory: the pickles
/// and at most as much again. Throws InputError if it cannot be read.
Checked<FileContent> read_torch_legacy(const InputFile& file) { return LegacyFile(file).read(); }

/// No checksums.
std::vector<Patch> in_place(const PatchedFile& /*file*/) { return {}; }

const FileFormat kFormat{.name = "torch_legacy",
                         .writer = "torch",
                         .recognise = is_torch_legacy,
                         .read = read_torch_legacy,
                         .in_place = in_place};
const FormatRegistration kRegistration{kFormat};

}  // namespace

}  // namespace masque::store
