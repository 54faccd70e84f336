#include "store/weights_writer.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/registry/registry.hpp"

namespace masque::store {

namespace {

using Writers = Registry<WeightsWriter>;

/// Further names that files of a format have.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kOtherExtensions{
    {{".pt", "torch"}, {".pth", "torch"}}};

}  // namespace

std::span<const WeightsWriter* const> weights_writers() { return Writers::of_process().all(); }

const WeightsWriter& weights_writer(std::string_view name) {
  const WeightsWriter* found = Writers::of_process().find(name);
  MASQUE_CHECK(found != nullptr);
  return *found;
}

const WeightsWriter* writer_for_path(std::string_view path) {
  for (const WeightsWriter* writer : Writers::of_process().all()) {
    if (path.ends_with(writer->extension)) return writer;
  }
  for (const auto& [extension, name] : kOtherExtensions) {
    if (!path.ends_with(extension)) continue;
    if (const WeightsWriter* found = Writers::of_process().find(name)) return found;
  }
  return nullptr;
}

void check_folder_output(std::string_view path) {
  if (writer_for_path(path) == nullptr) return;
  throw UsageError(
      fmt::format("{} {}: the input is a folder, expected a folder name for the output",
                  field("output"), escape(path)));
}

std::string data_name(const WeightsWriter& writer, const std::string& name) {
  MASQUE_CHECK(!writer.data.empty());
  if (!name.ends_with(writer.extension) || base_name(name).size() == writer.extension.size()) {
    throw InputError(name, fmt::format("the files of {} must be called NAME{} and NAME{}",
                                       writer.name, writer.extension, writer.data));
  }
  return name.substr(0, name.size() - writer.extension.size()) + std::string(writer.data);
}

std::uint64_t place_after(std::uint64_t at, std::uint64_t size, const std::string& path) {
  const auto end = checked_add(at, size);
  if (!end) throw InputError(path, "would have more than 2^64 bytes");
  return *end;
}

WriterRegistration::WriterRegistration(const WeightsWriter& writer) {
  Writers::of_process().add(writer);
}

}  // namespace masque::store
