#include "store/torch/torch_state.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_set>

#include <fmt/format.h>

#include "base/escape.hpp"
#include "base/string/comma_list.hpp"
#include "store/strided_reader.hpp"

namespace masque::store {

namespace {

/// Under which training programs keep the state dict.
constexpr std::array<std::string_view, 6> kUsualKeys{"state_dict", "model", "model_state_dict",
                                                     "module",     "net",   "ema"};
constexpr std::size_t kMaxTensors = 1'000'000;
constexpr std::size_t kMaxStateNameBytes = 65'536;
constexpr std::size_t kNamed = 5;  ///< of what is left out, in a note

struct Dict {
  PickleId id;
  std::string key;  ///< where it is; empty: the whole
};

class StateReader {
 public:
  StateReader(const Pickle& pickle, const TorchPlaces& places) : pickle_(pickle), places_(places) {}

  Checked<FileContent> read() {
    auto found = find_state_dict();
    if (auto* violation = std::get_if<Violation>(&found)) return std::move(*violation);
    const Dict& state = std::get<Dict>(found);
    const auto items = pickle_.items(state.id);
    std::unordered_set<std::string_view> keys;
    std::vector<std::string> others;
    for (std::size_t i = 0; i < items.size(); i += 2) {
      const bool named = pickle_.kind(items[i]) == PickleKind::kText;
      const std::string_view key = named ? pickle_.text(items[i]) : "(a key that is not text)";
      if (named && !keys.insert(key).second) return fail("duplicate-key", "two entries", key);
      if (pickle_.kind(items[i + 1]) != PickleKind::kTensor) {
        others.emplace_back(key);
        continue;
      }
      if (!named) return fail("torch-state-dict", "a tensor whose key is not text");
      if (key.size() > kMaxStateNameBytes)
        return fail("limit-name", fmt::format("a name of {} bytes", key.size()));
      if (content_.tensors.size() == kMaxTensors)
        return fail("limit-tensors", fmt::format("more than {} tensors", kMaxTensors));
      const PickleTensor& tensor = pickle_.tensor(items[i + 1]);
      read_.insert(&tensor);
      if (auto broken = add(key, tensor)) return *std::move(broken);
    }
    note("not tensors, left out: {}", others);
    if (!state.key.empty()) note_rest(state);
    add_other_extents(state.id);
    return std::move(content_);
  }

 private:
  Violation fail(std::string rule, std::string message, std::string_view tensor = {}) const {
    return {std::move(rule), std::move(message), std::string(tensor), places_.pickle_begin};
  }

  std::size_t tensors_of(PickleId id) const {
    if (pickle_.kind(id) != PickleKind::kDict) return 0;
    const auto items = pickle_.items(id);
    std::size_t count = 0;
    for (std::size_t i = 1; i < items.size(); i += 2)
      count += pickle_.kind(items[i]) == PickleKind::kTensor ? 1U : 0U;
    return count;
  }

  Checked<Dict> find_state_dict() const {
    const PickleId top = pickle_.top;
    if (pickle_.kind(top) != PickleKind::kDict) {
      return fail("torch-state-dict", pickle_.kind(top) == PickleKind::kTensor
                                          ? "a tensor alone, expected a state dict"
                                          : "no dict of tensors, expected a state dict");
    }
    const auto items = pickle_.items(top);
    std::vector<Dict> found;
    for (std::size_t i = 0; i < items.size(); i += 2) {
      if (pickle_.kind(items[i]) != PickleKind::kText) continue;
      const std::string_view key = pickle_.text(items[i]);
      const bool usual = std::ranges::find(kUsualKeys, key) != kUsualKeys.end();
      const bool again =
          std::ranges::any_of(found, [&](const Dict& dict) { return dict.id == items[i + 1]; });
      if (usual && !again && tensors_of(items[i + 1]) > 0)
        found.push_back({items[i + 1], std::string(key)});
    }
    // Counters and losses next to a model are tensors, too.
    const auto fewer = [&](const Dict& dict) { return tensors_of(dict.id) < tensors_of(top); };
    if (tensors_of(top) > 0 && std::ranges::all_of(found, fewer)) return Dict{top, ""};
    if (found.size() == 1) return found[0];
    if (found.empty() && items.empty()) return Dict{top, ""};
    if (found.empty()) return fail("torch-state-dict", "no dict of tensors, expected one");
    return fail("torch-state-dict",
                fmt::format("state dicts under '{}' and '{}': save one of them, "
                            "torch.save(torch.load(FILE)['{}'], NEW)",
                            found[0].key, found[1].key, found[0].key));
  }

  std::optional<Violation> add(std::string_view name, const PickleTensor& tensor) {
    TensorInfo info;
    info.name = name;
    info.dtype = tensor.dtype;
    info.shape = tensor.sizes;
    // torch counts bytes, each of which holds two.
    if (is_packed(info.dtype) && !info.shape.empty() && info.shape.back() <= ~std::uint64_t{0} / 2)
      info.shape.back() *= 2;
    const auto bytes = byte_count(info.dtype, info.shape);
    if (!bytes) return fail("pickle-tensor", "a packed type whose shape does not fit", name);
    info.begin = places_.begin[tensor.storage] + tensor.begin;
    info.end = info.begin + *bytes;
    const std::uint64_t element = std::max(dtype_bits(info.dtype), 8U) / 8;
    const std::uint64_t swap = !places_.big_endian ? 1 : element / components_of(info.dtype);
    if (*bytes > 0) {
      // The stride of a dimension of one place says nothing.
      Shape strides = tensor.strides;
      for (std::size_t d = 0; d < strides.size(); ++d) {
        if (tensor.sizes[d] == 1) strides[d] = 0;
      }
      const auto [first, added] = places_seen_.emplace(
          Key{tensor.storage, tensor.begin, info.dtype, tensor.sizes, std::move(strides)},
          content_.tensors.size());
      if (!added) {
        info.alias_of = content_.tensors[first->second].name;
        info.reader = content_.tensors[first->second].reader;
      } else if (swap > 1 || !is_contiguous(tensor.sizes, tensor.strides)) {
        info.reader =
            make_strided_reader({info.begin, element, tensor.sizes, tensor.strides, swap}, tile_);
      }
    }
    content_.tensors.push_back(std::move(info));
    return std::nullopt;
  }

  /// Of what the pickle holds besides the state dict. The pickle's reader has checked the places.
  void add_other_extents(PickleId state) {
    // A tensor of the state dict may be an element of other lists and dicts, too.
    std::unordered_set<const PickleTensor*> again;
    for (std::size_t id = 0; id < pickle_.values.size(); ++id) {
      const auto other = static_cast<PickleId>(id);
      const PickleKind kind = pickle_.kind(other);
      if (other == state || (kind != PickleKind::kDict && kind != PickleKind::kList)) continue;
      for (const PickleId item : pickle_.items(other)) {
        if (pickle_.kind(item) == PickleKind::kTensor) again.insert(&pickle_.tensor(item));
      }
    }
    for (const PickleTensor& tensor : pickle_.tensors) {
      if (read_.contains(&tensor) && !again.contains(&tensor)) continue;
      std::uint64_t last = 0;
      bool empty = false;
      for (std::size_t d = 0; d < tensor.sizes.size(); ++d) {
        empty = empty || tensor.sizes[d] == 0;
        if (!empty) last += (tensor.sizes[d] - 1) * tensor.strides[d];
      }
      if (empty) continue;
      const std::uint64_t begin = places_.begin[tensor.storage] + tensor.begin;
      const std::uint64_t element = std::max(dtype_bits(tensor.dtype), 8U) / 8;
      content_.other_extents.emplace_back(begin, begin + (last + 1) * element);
    }
  }

  static std::uint64_t components_of(DType dtype) { return dtype == DType::kC64 ? 2 : 1; }

  /// What stands next to the state dict.
  void note_rest(const Dict& state) {
    const auto items = pickle_.items(pickle_.top);
    std::vector<std::string> others;
    for (std::size_t i = 0; i < items.size(); i += 2) {
      if (items[i + 1] == state.id) continue;
      others.emplace_back(pickle_.kind(items[i]) == PickleKind::kText ? pickle_.text(items[i])
                                                                      : "(a key that is not text)");
    }
    content_.notes.push_back(fmt::format("only the tensors of '{}' are read", state.key));
    note("other entries, left out: {}", others);
  }

  void note(std::string_view text, const std::vector<std::string>& names) {
    if (names.empty()) return;
    std::string list = comma_list(
        std::span(names).first(std::min(names.size(), kNamed)),
        [](const std::string& name) { return fmt::format("'{}'", escape(name.substr(0, 100))); });
    if (names.size() > kNamed) list += fmt::format(" and {} more", names.size() - kNamed);
    content_.notes.push_back(fmt::format(fmt::runtime(text), list));
  }

  using Key = std::tuple<std::uint32_t, std::uint64_t, DType, Shape, Shape>;

  const Pickle& pickle_;
  const TorchPlaces& places_;
  FileContent content_;
  std::map<Key, std::size_t> places_seen_;
  std::unordered_set<const PickleTensor*> read_;
  std::shared_ptr<StridedTile> tile_ = make_strided_tile();
};

}  // namespace

Checked<FileContent> torch_content(const Pickle& pickle, const TorchPlaces& places) {
  return StateReader(pickle, places).read();
}

}  // namespace masque::store
