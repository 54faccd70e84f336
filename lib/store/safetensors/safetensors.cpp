#include "store/safetensors/safetensors.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json.hpp"
#include "base/json/json_writer.hpp"
#include "base/little_endian.hpp"

namespace masque::store {

namespace {

constexpr std::string_view kMetadataKey = "__metadata__";
constexpr int kMaxDepth = 4;

/// Turns the events of the header's JSON into tensors. `state_` says what may come next.
class HeaderHandler final : public JsonHandler {
 public:
  explicit HeaderHandler(const SafetensorsLimits& limits) : limits_(limits) {}

  SafetensorsHeader header;
  std::optional<Violation> violation;

  bool scalar(JsonKind kind, std::string_view text, std::size_t begin) override {
    switch (state_) {
      case State::kMetadata:
        if (kind == JsonKind::kNull) return leave();
        return fail("metadata-type", begin,
                    "__metadata__ is not an object, expected one of strings");
      case State::kMetadataValue:
        return fail("metadata-type", begin,
                    fmt::format("metadata '{}' is not a string, expected one", escape(key_)));
      case State::kShapeItems:
      case State::kOffsetsItems: return number(kind, text, begin);
      case State::kUnknown: return depth_ > unknown_depth_ || leave();
      case State::kRoot: return fail("not-an-object", begin, "the header is not a JSON object");
      default: return wrong_type(begin);
    }
  }

  bool string(std::string& value, std::size_t begin, std::size_t /*end*/) override {
    switch (state_) {
      case State::kMetadataValue:
        metadata_bytes_ += key_.size() + value.size();
        if (metadata_bytes_ > limits_.metadata_bytes) {
          return fail("limit-metadata", begin,
                      fmt::format("metadata above {} bytes", limits_.metadata_bytes));
        }
        header.metadata.emplace_back(key_, std::move(value));
        state_ = State::kMetadataItems;
        return true;
      case State::kDtype: {
        const auto dtype = find_dtype(value);
        if (!dtype) {
          return fail("unknown-dtype", begin,
                      fmt::format("dtype '{}' is not one of the format", escape(value)));
        }
        tensor().dtype = *dtype;
        has_dtype_ = true;
        state_ = State::kEntry;
        return true;
      }
      case State::kUnknown: return depth_ > unknown_depth_ || leave();
      case State::kRoot: return fail("not-an-object", begin, "the header is not a JSON object");
      case State::kMetadata:
        return fail("metadata-type", begin,
                    "__metadata__ is not an object, expected one of strings");
      default: return wrong_type(begin);
    }
  }

  bool key(std::string& name, std::size_t begin) override {
    switch (state_) {
      case State::kTop:
        if (name == kMetadataKey) {
          state_ = State::kMetadata;
          return true;
        }
        return start_entry(name, begin);
      case State::kMetadataItems:
        key_ = std::move(name);
        state_ = State::kMetadataValue;
        return true;
      case State::kEntry:
        if (name == "dtype") {
          state_ = State::kDtype;
        } else if (name == "shape") {
          state_ = State::kShape;
        } else if (name == "data_offsets") {
          state_ = State::kOffsets;
        } else {
          if (header.unknown_fields++ == 0) header.unknown_field = name.substr(0, 100);
          unknown_depth_ = depth_;
          state_ = State::kUnknown;
        }
        return true;
      default: return true;  // inside an unknown field
    }
  }

  bool begin(JsonKind kind, std::size_t begin) override {
    ++depth_;
    const bool object = kind == JsonKind::kObject;
    switch (state_) {
      case State::kRoot:
        if (!object) return fail("not-an-object", begin, "the header is not a JSON object");
        state_ = State::kTop;
        return true;
      case State::kMetadata:
        if (!object) {
          return fail("metadata-type", begin,
                      "__metadata__ is not an object, expected one of strings");
        }
        header.has_metadata = true;
        state_ = State::kMetadataItems;
        return true;
      case State::kMetadataValue:
        return fail("metadata-type", begin,
                    fmt::format("metadata '{}' is not a string, expected one", escape(key_)));
      case State::kEntryValue:
        if (!object) return fail("entry-type", begin, "the entry is not an object, expected one");
        state_ = State::kEntry;
        return true;
      case State::kShape:
        if (object) return wrong_type(begin);
        has_shape_ = true;
        state_ = State::kShapeItems;
        return true;
      case State::kOffsets:
        if (object) return wrong_type(begin);
        has_offsets_ = true;
        state_ = State::kOffsetsItems;
        return true;
      case State::kUnknown: return true;
      default: return wrong_type(begin);
    }
  }

  bool end(JsonKind /*kind*/, std::size_t end) override {
    --depth_;
    switch (state_) {
      case State::kEntry: return finish_entry();
      case State::kMetadataItems: state_ = State::kTop; return true;
      case State::kShapeItems: state_ = State::kEntry; return true;
      case State::kOffsetsItems:
        if (offsets_.size() != 2) {
          return fail("offsets-pair", end,
                      fmt::format("data_offsets has {} numbers, expected 2", offsets_.size()));
        }
        state_ = State::kEntry;
        return true;
      case State::kUnknown: return depth_ > unknown_depth_ || leave();
      default: return true;
    }
  }

 private:
  enum class State {
    kRoot,
    kTop,
    kMetadata,
    kMetadataItems,
    kMetadataValue,
    kEntryValue,
    kEntry,
    kDtype,
    kShape,
    kShapeItems,
    kOffsets,
    kOffsetsItems,
    kUnknown,
  };

  TensorInfo& tensor() { return header.tensors.back(); }

  bool fail(std::string rule, std::size_t at, std::string message) {
    const bool in_entry = state_ != State::kRoot && state_ != State::kTop &&
                          state_ != State::kMetadata && state_ != State::kMetadataItems &&
                          state_ != State::kMetadataValue;
    violation = Violation{std::move(rule), std::move(message),
                          in_entry && !header.tensors.empty() ? tensor().name : "", 8 + at};
    return false;
  }

  bool wrong_type(std::size_t at) {
    switch (state_) {
      case State::kDtype: return fail("entry-type", at, "dtype is not a string, expected one");
      case State::kShape: return fail("entry-type", at, "shape is not an array, expected one");
      case State::kOffsets:
        return fail("entry-type", at, "data_offsets is not an array, expected one");
      case State::kShapeItems:
      case State::kOffsetsItems:
        return fail("bad-number", at, "found another value, expected a whole number below 2^64");
      default: return fail("entry-type", at, "the entry is not an object, expected one");
    }
  }

  /// Back to where an unknown field or a null __metadata__ stood.
  bool leave() {
    state_ = state_ == State::kUnknown ? State::kEntry : State::kTop;
    return true;
  }

  bool start_entry(std::string& name, std::size_t begin) {
    if (header.tensors.size() >= limits_.tensors) {
      return fail("limit-tensors", begin, fmt::format("more than {} tensors", limits_.tensors));
    }
    if (name.size() > limits_.name_bytes) {
      return fail(
          "limit-name", begin,
          fmt::format("a name of {} bytes, expected at most {}", name.size(), limits_.name_bytes));
    }
    header.tensors.emplace_back().name = std::move(name);
    has_dtype_ = has_shape_ = has_offsets_ = false;
    offsets_.clear();
    entry_begin_ = begin;
    state_ = State::kEntryValue;
    return true;
  }

  bool number(JsonKind kind, std::string_view text, std::size_t begin) {
    const auto value = kind == JsonKind::kNumber ? parse_unsigned(text) : std::nullopt;
    if (!value) {
      return fail("bad-number", begin,
                  fmt::format("found {}, expected a whole number below 2^64", escape(text)));
    }
    if (state_ == State::kOffsetsItems) {
      if (offsets_.size() < 3) offsets_.push_back(*value);
      return true;
    }
    if (tensor().shape.size() >= limits_.rank) {
      return fail("limit-rank", begin, fmt::format("more than {} dimensions", limits_.rank));
    }
    tensor().shape.push_back(*value);
    return true;
  }

  bool finish_entry() {
    TensorInfo& entry = tensor();
    for (const auto& [present, field] :
         {std::pair{has_dtype_, "dtype"}, {has_shape_, "shape"}, {has_offsets_, "data_offsets"}}) {
      if (!present) return fail("missing-field", entry_begin_, fmt::format("no {}", field));
    }
    entry.begin = offsets_[0];
    entry.end = offsets_[1];
    if (entry.begin > entry.end) {
      return fail("offsets-order", entry_begin_,
                  fmt::format("data_offsets [{},{}] run backwards", entry.begin, entry.end));
    }
    const auto count = element_count(entry.shape);
    const auto bits = count ? checked_multiply(*count, dtype_bits(entry.dtype)) : std::nullopt;
    if (!bits) {
      return fail("shape-overflow", entry_begin_,
                  fmt::format("shape {} has more than 2^64 bits", shape_text(entry.shape)));
    }
    if (*bits % 8 != 0) {
      return fail("partial-byte", entry_begin_,
                  fmt::format("{} {} has {} bits, expected whole bytes", dtype_name(entry.dtype),
                              shape_text(entry.shape), *bits));
    }
    if (*bits / 8 != entry.end - entry.begin) {
      return fail("size-mismatch", entry_begin_,
                  fmt::format("{} {} needs {} bytes, data_offsets span {}", dtype_name(entry.dtype),
                              shape_text(entry.shape), *bits / 8, entry.end - entry.begin));
    }
    state_ = State::kTop;
    return true;
  }

  const SafetensorsLimits& limits_;
  State state_ = State::kRoot;
  int depth_ = 0;
  int unknown_depth_ = 0;
  std::string key_;
  std::uint64_t metadata_bytes_ = 0;
  std::size_t entry_begin_ = 0;
  bool has_dtype_ = false;
  bool has_shape_ = false;
  bool has_offsets_ = false;
  std::vector<std::uint64_t> offsets_;
};

/// The tensors must tile the data: no hole, no overlap, up to the end of the file.
std::optional<Violation> check_layout(const std::vector<TensorInfo>& tensors,
                                      std::uint64_t data_begin, std::uint64_t data_size) {
  std::uint64_t expected = 0;
  for (const TensorInfo& tensor : tensors) {
    if (tensor.begin != expected) {
      const bool overlap = tensor.begin < expected;
      return Violation{overlap ? "overlap" : "hole",
                       fmt::format("data begins at offset {}, expected {}", tensor.begin, expected),
                       tensor.name, data_begin + std::min(tensor.begin, data_size)};
    }
    expected = tensor.end;
  }
  if (expected != data_size) {
    return Violation{
        "file-size",
        fmt::format("tensors need {} bytes of data, the file has {}", expected, data_size),
        tensors.empty() ? "" : tensors.back().name, data_begin + std::min(expected, data_size)};
  }
  return std::nullopt;
}

}  // namespace

Checked<std::uint64_t> safetensors_header_length(Bytes first, std::uint64_t file_size,
                                                 const SafetensorsLimits& limits) {
  if (file_size < 8 || first.size() < 8) {
    return Violation{"too-short", fmt::format("{} bytes, expected at least 8", file_size), "", 0};
  }
  const auto length = load_number<std::uint64_t>(first.data());
  if (length > limits.header_bytes) {
    return Violation{
        "header-too-large",
        fmt::format("a header of {} bytes, expected at most {}", length, limits.header_bytes), "",
        0};
  }
  if (length > file_size - 8) {
    return Violation{"header-beyond-file",
                     fmt::format("a header of {} bytes, the file has {} after its length", length,
                                 file_size - 8),
                     "", 0};
  }
  return length;
}

Checked<SafetensorsHeader> parse_safetensors_header(std::string_view json, std::uint64_t file_size,
                                                    const SafetensorsLimits& limits) {
  MASQUE_CHECK(file_size >= 8 + json.size());
  HeaderHandler handler(limits);
  const auto error = scan_json(json, kMaxDepth, handler);
  if (handler.violation) return *std::move(handler.violation);
  if (error) {
    const char* rule = error->bad_utf8        ? "not-utf8"
                       : error->duplicate_key ? "duplicate-key"
                                              : "not-json";
    return Violation{rule, error->message, "", 8 + error->offset};
  }
  SafetensorsHeader header = std::move(handler.header);
  header.data_begin = 8 + json.size();
  header.leading_space = !json.starts_with('{');
  std::stable_sort(header.tensors.begin(), header.tensors.end(),
                   [](const TensorInfo& a, const TensorInfo& b) {
                     return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
                   });
  if (auto broken =
          check_layout(header.tensors, header.data_begin, file_size - header.data_begin)) {
    return *std::move(broken);
  }
  for (TensorInfo& tensor : header.tensors) {
    tensor.begin += header.data_begin;
    tensor.end += header.data_begin;
  }
  return header;
}

std::string write_safetensors_header(const std::vector<TensorInfo>& tensors,
                                     const Metadata& metadata, std::uint64_t alignment) {
  std::string json;
  JsonWriter out(json, JsonLayout::kCompact, JsonControls::kKeep);
  out.begin_object();
  if (!metadata.empty()) {
    out.key("__metadata__").begin_object();
    for (const auto& [key, value] : metadata) out.member(key, value);
    out.end_object();
  }
  std::uint64_t begin = 0;
  for (const TensorInfo& tensor : tensors) {
    const auto end = checked_add(begin, byte_count(tensor.dtype, tensor.shape).value());
    if (!end) throw InputError("the tensors need more than 2^64 bytes");
    out.key(tensor.name).begin_object().member("dtype", dtype_name(tensor.dtype));
    out.raw_member("shape", shape_text(tensor.shape));
    out.key("data_offsets").array(std::array{begin, *end}).end_object();
    begin = *end;
  }
  out.end_object();
  json.append((alignment - (8 + json.size()) % alignment) % alignment, ' ');
  std::string bytes;
  append_number(bytes, std::uint64_t{json.size()});
  return bytes + json;
}

bool safetensors_before(const TensorInfo& a, const TensorInfo& b) {
  return a.dtype != b.dtype ? a.dtype > b.dtype : a.name < b.name;
}

}  // namespace masque::store
