#include "store/weights_writer.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "base/file.hpp"

namespace masque {

namespace {

std::vector<const WeightsWriter*>& registry() {
  static std::vector<const WeightsWriter*> writers;
  return writers;
}

/// Further names that files of a format have.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kOtherExtensions{
    {{".pt", "torch"}, {".pth", "torch"}}};

}  // namespace

std::span<const WeightsWriter* const> weights_writers() { return registry(); }

const WeightsWriter& weights_writer(std::string_view name) {
  const auto found = std::ranges::find(registry(), name, &WeightsWriter::name);
  MASQUE_CHECK(found != registry().end());
  return **found;
}

const WeightsWriter* writer_for_path(std::string_view path) {
  for (const WeightsWriter* writer : registry()) {
    if (path.ends_with(writer->extension)) return writer;
  }
  for (const auto& [extension, name] : kOtherExtensions) {
    if (!path.ends_with(extension)) continue;
    const auto found = std::ranges::find(registry(), name, &WeightsWriter::name);
    if (found != registry().end()) return *found;
  }
  return nullptr;
}

std::string data_name(const WeightsWriter& writer, const std::string& name) {
  MASQUE_CHECK(!writer.data.empty());
  if (!name.ends_with(writer.extension) || base_name(name).size() == writer.extension.size()) {
    throw InputError(name, fmt::format("the files of {} are called NAME{} and NAME{}", writer.name,
                                       writer.extension, writer.data));
  }
  return name.substr(0, name.size() - writer.extension.size()) + std::string(writer.data);
}

std::uint64_t place_behind(std::uint64_t at, std::uint64_t size, const std::string& path) {
  const auto end = checked_add(at, size);
  if (!end) throw InputError(path, "would have more than 2^64 bytes");
  return *end;
}

WriterRegistration::WriterRegistration(const WeightsWriter& writer) {
  auto& writers = registry();
  writers.insert(std::ranges::upper_bound(writers, writer.name, {}, &WeightsWriter::name), &writer);
}

}  // namespace masque
