#include "store/tensorflow/object_graph.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/string/utf8.hpp"
#include "store/tensorflow/wire.hpp"

namespace masque::store {

namespace {

constexpr std::uint64_t kMostGraphBytes = 64 << 20;

/// The fields of one SerializedTensor; false if it is none.
bool read_variable(std::string_view message, std::vector<GraphVariable>& out) {
  GraphVariable variable;
  WireReader reader(message);
  while (const auto field = reader.next()) {
    if (field->is_bytes(2)) variable.name = field->bytes;
    if (field->is_bytes(3)) variable.key = field->bytes;
  }
  out.push_back(std::move(variable));
  return !reader.broken();
}

/// The text of a tensor of one string: its length, a sum of that, the characters.
std::optional<std::string> only_string(const Checkpoint& checkpoint, const OpaqueTensor& tensor) {
  if (tensor.type != "STRING" || !tensor.shape.empty() || tensor.bytes() > kMostGraphBytes)
    return std::nullopt;
  std::string bytes(tensor.bytes(), '\0');
  checkpoint.files()[tensor.file].file.read(tensor.begin, std::as_writable_bytes(std::span(bytes)));
  constexpr std::size_t kSumBytes = 4;
  std::size_t at = 0;
  const auto length = read_varint(bytes, at);
  if (!length || bytes.size() - at < kSumBytes || bytes.size() - at - kSumBytes != *length)
    return std::nullopt;
  return bytes.substr(at + kSumBytes);
}

}  // namespace

std::optional<std::vector<GraphVariable>> read_object_graph(std::string_view message) {
  std::vector<GraphVariable> out;
  WireReader nodes(message);
  while (const auto node = nodes.next()) {
    if (!node->is_bytes(1)) continue;
    WireReader fields(node->bytes);
    while (const auto field = fields.next()) {
      if (field->is_bytes(2) && !read_variable(field->bytes, out)) return std::nullopt;
    }
    if (fields.broken()) return std::nullopt;
  }
  return nodes.broken() ? std::nullopt : std::optional(std::move(out));
}

NamePlan variable_names(const Checkpoint& checkpoint) {
  const OpaqueTensor* tensor = checkpoint.find_opaque(kGraphKey);
  if (tensor == nullptr)
    throw InputError(checkpoint.path(), "has no object graph with the names of variables");
  const auto text = only_string(checkpoint, *tensor);
  const auto graph = text ? read_object_graph(*text) : std::nullopt;
  if (!graph)
    throw InputError(checkpoint.path(), fmt::format("'{}' is not an object graph", kGraphKey));
  std::map<std::string_view, int> uses;
  for (const GraphVariable& variable : *graph) ++uses[variable.name];
  NamePlan plan;
  for (const GraphVariable& variable : *graph) {
    const bool there =
        checkpoint.find(variable.key) != nullptr || checkpoint.find_opaque(variable.key) != nullptr;
    if (!there || variable.name.empty() || variable.key == kGraphKey) continue;
    if (uses[variable.name] == 1 && valid_utf8(variable.name))
      plan.names[variable.key] = {variable.name};
  }
  const std::size_t kept =
      checkpoint.tensors().size() + checkpoint.opaque().size() - 1 - plan.names.size();
  if (kept > 0) {
    plan.notes.push_back(fmt::format(
        "{} no unique variable name",
        kept == 1 ? "1 tensor keeps its key:" : fmt::format("{} tensors keep their keys:", kept)));
  }
  // It leads from objects to keys that are names now.
  plan.left_out.emplace_back(kGraphKey);
  plan.notes.push_back(fmt::format("'{}' is left out", kGraphKey));
  return plan;
}

}  // namespace masque::store
