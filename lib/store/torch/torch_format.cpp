// PyTorch's zip files (.bin, .pt, .pth since 1.6): FOLDER/data.pkl, and FOLDER/data/KEY for every
// storage.
#include <algorithm>
#include <map>
#include <set>
#include <span>

#include <fmt/format.h>

#include "base/escape.hpp"
#include "base/string/parse_number.hpp"
#include "store/format.hpp"
#include "store/torch/torch_state.hpp"
#include "store/zip/zip.hpp"
#include "store/zip/zip_stream.hpp"

namespace masque::store {

namespace {

constexpr std::uint64_t kMaxSmallRecord = 64;
constexpr std::size_t kStorageTupleItems = 5;

class TorchZip {
 public:
  explicit TorchZip(const InputFile& file) : file_(file) {}

  Checked<FileContent> read() {
    // Programs are packed; they are to be called by their name before that is refused.
    auto directory = read_zip_directory(file_, {.deflate = true});
    if (auto* violation = std::get_if<Violation>(&directory)) return std::move(*violation);
    members_ = std::get<std::vector<ZipMember>>(std::move(directory));
    if (auto broken = sort_members()) return *std::move(broken);
    if (auto broken = check_methods()) return *std::move(broken);
    TorchPlaces places;
    if (auto broken = check_version()) return *std::move(broken);
    if (auto broken = read_byteorder(places.big_endian)) return *std::move(broken);
    const auto data = by_name_.find("data.pkl");
    if (data == by_name_.end()) return Violation{"torch-member", "no data.pkl in its folder"};
    std::string text;
    if (auto broken = read_member(*data->second, PickleLimits{}.bytes, text))
      return *std::move(broken);
    places.pickle_begin = data->second->data_begin;
    auto read = read_pickle(std::move(text), places.pickle_begin, kStorageTupleItems);
    if (auto* violation = std::get_if<Violation>(&read)) return std::move(*violation);
    const auto& pickle = std::get<Pickle>(read);
    if (pickle.end != data->second->bytes) {
      return Violation{"pickle-rest",
                       fmt::format("{} bytes after its end", data->second->bytes - pickle.end),
                       "data.pkl", places.pickle_begin + pickle.end};
    }
    if (auto broken = find_storages(pickle, places.begin)) return *std::move(broken);
    return torch_content(pickle, places);
  }

 private:
  /// Names without the folder that all share.
  std::optional<Violation> sort_members() {
    const auto is_pickle = [](const ZipMember& member) {
      return member.name.ends_with("/data.pkl");
    };
    if (std::ranges::none_of(members_, is_pickle)) {
      const bool keras = std::ranges::any_of(
          members_, [](const ZipMember& m) { return m.name == "model.weights.h5"; });
      return Violation{"torch-member", keras ? "a zip file of Keras, which is not read: unpack it"
                                             : "a zip file without FOLDER/data.pkl, which "
                                               "torch.save would have written"};
    }
    const std::string& first = members_.empty() ? std::string() : members_[0].name;
    const std::string folder = first.substr(0, first.find('/') + 1);
    for (const ZipMember& member : members_) {
      if (folder.empty() || !member.name.starts_with(folder)) {
        return Violation{"torch-member", "not in the folder of the other members", member.name,
                         member.header_begin};
      }
      const std::string name = member.name.substr(folder.size());
      by_name_[name] = &member;
      if (name != "constants.pkl" && !name.starts_with("code/")) continue;
      return Violation{"torch-script",
                       "a program (TorchScript), which is not read: save model.state_dict() "
                       "with torch.save",
                       member.name, member.header_begin};
    }
    return std::nullopt;
  }

  std::optional<Violation> check_methods() const {
    for (const ZipMember& member : members_) {
      if (member.method == ZipMethod::kStored) continue;
      return Violation{"zip-method", "packed, expected stored: save it again with torch.save",
                       member.name, member.header_begin};
    }
    return std::nullopt;
  }

  std::optional<Violation> read_member(const ZipMember& member, std::uint64_t most,
                                       std::string& out) const {
    if (member.bytes > most) {
      return Violation{"limit-pickle",
                       fmt::format("{} bytes, expected at most {}", member.bytes, most),
                       member.name, member.data_begin};
    }
    out.resize(member.bytes);
    ZipStream stream(file_, member);
    if (auto broken = stream.read(std::as_writable_bytes(std::span(out)))) return broken;
    return stream.finish();
  }

  std::optional<Violation> read_byteorder(bool& big_endian) const {
    const auto found = by_name_.find("byteorder");
    if (found == by_name_.end()) return std::nullopt;
    std::string text;
    if (auto broken = read_member(*found->second, kMaxSmallRecord, text)) return broken;
    big_endian = text == "big";
    if (big_endian || text == "little") return std::nullopt;
    return Violation{"torch-byteorder", fmt::format("'{}', expected little or big", escape(text)),
                     found->second->name, found->second->data_begin};
  }

  std::optional<Violation> check_version() const {
    const auto found = by_name_.find("version");
    if (found == by_name_.end()) return std::nullopt;
    std::string text;
    if (auto broken = read_member(*found->second, kMaxSmallRecord, text)) return broken;
    std::string_view rest = text;
    const int version = take_number<int>(rest).value_or(0);
    if (version >= 1 && version <= 10 && (rest.empty() || rest == "\n")) return std::nullopt;
    return Violation{"torch-version", fmt::format("'{}', expected 1 to 10", escape(text)),
                     found->second->name, found->second->data_begin};
  }

  /// Every storage of the pickle is a member of its size, and every such member one of its
  /// storages.
  std::optional<Violation> find_storages(const Pickle& pickle,
                                         std::vector<std::uint64_t>& begin) const {
    std::set<std::string> wanted;
    for (const PickleStorage& storage : pickle.storages) {
      const auto found = by_name_.find("data/" + storage.key);
      if (found == by_name_.end()) {
        return Violation{"torch-storage",
                         fmt::format("no data/{}, which tensors refer to", storage.key)};
      }
      const ZipMember& member = *found->second;
      if (member.bytes != storage.bytes()) {
        return Violation{"torch-storage",
                         fmt::format("{} bytes, the pickle says {}", member.bytes, storage.bytes()),
                         member.name, member.data_begin};
      }
      begin.push_back(member.data_begin);
      wanted.insert(found->first);
    }
    for (const auto& [name, member] : by_name_) {
      if (!name.starts_with("data/") || wanted.count(name) != 0) continue;
      return Violation{"torch-storage", "a storage that the pickle does not mention", member->name,
                       member->data_begin};
    }
    return std::nullopt;
  }

  const InputFile& file_;
  std::vector<ZipMember> members_;
  std::map<std::string, const ZipMember*> by_name_;
};

/// Whether `file`, whose first bytes are `first`, is a zip file that is to be read as one of
/// PyTorch: its first member is no array of NumPy. Throws InputError if it cannot be read.
bool is_torch_zip(const InputFile& file, Bytes first) {
  if (!is_zip(first) || zip::get<std::uint32_t>(first, 0) != zip::kLocalHeader) return false;
  if (first.size() < zip::kLocalHeaderBytes) return true;  // cut short
  const std::uint64_t length = std::min<std::uint64_t>(zip::get<std::uint16_t>(first, 26),
                                                       file.size() - zip::kLocalHeaderBytes);
  std::string name(length, '\0');
  file.read(zip::kLocalHeaderBytes, std::as_writable_bytes(std::span(name)));
  return !name.ends_with(".npy");
}

/// Reads the directory of `file` and the pickle, whose CRC-32 is checked; no storages. Rules: those
/// of zip (stored members only), of pickles, of torch_content, and "torch-member", "torch-script",
/// "torch-byteorder", "torch-version", "torch-storage", "pickle-rest". Throws InputError if it
/// cannot be read.
Checked<FileContent> read_torch_zip(const InputFile& file) { return TorchZip(file).read(); }

std::vector<Patch> in_place(const PatchedFile& file) {
  return zip_checksums(file, {.deflate = true});
}

const FileFormat kFormat{.name = "torch",
                         .writer = "torch",
                         .recognise = is_torch_zip,
                         .read = read_torch_zip,
                         .check_sums = check_zip_sums,
                         .in_place = in_place};
const FormatRegistration kRegistration{kFormat};

}  // namespace

}  // namespace masque::store
