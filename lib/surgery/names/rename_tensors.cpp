#include "surgery/names/rename_tensors.hpp"

#include <algorithm>
#include <deque>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json.hpp"
#include "base/string/split.hpp"
#include "store/gguf/gguf_names.hpp"
#include "store/markers.hpp"
#include "store/safetensors/safetensors.hpp"

namespace masque::surgery {

namespace {

const std::string& new_name(const store::NameMap& names, const std::string& name) {
  const auto found = names.find(name);
  return found == names.end() ? name : found->second.name;
}

bool in_reference_order(const store::OutputTensor& a, const store::OutputTensor& b) {
  return store::safetensors_before(a.info, b.info);
}

store::OutputWeights renamed(store::OutputWeights weights, const store::NameMap& names) {
  const bool sorted = std::ranges::is_sorted(weights.tensors, in_reference_order);
  apply_names(weights, names);
  if (sorted) std::ranges::sort(weights.tensors, in_reference_order);
  return weights;
}

bool changes(const store::WeightsFile& file, const store::NameMap& names) {
  const auto is_new = [&](const auto& tensor) {
    return new_name(names, tensor.name) != tensor.name;
  };
  return std::ranges::any_of(file.content.tensors, is_new) ||
         std::ranges::any_of(file.content.opaque, is_new);
}

/// The text `index` of a valid index with the new `names` of tensors. Every other byte stays.
std::string with_new_names(const std::string& index, const store::NameMap& names) {
  const JsonValue root = parse_json_file(index, "index");
  const JsonValue* map = root.find("weight_map");
  MASQUE_CHECK(map != nullptr);
  std::string text;
  std::size_t done = 0;
  for (const JsonMember& member : map->members) {
    const std::string& now = new_name(names, member.name);
    if (now == member.name) continue;
    // Between a key and its value there are only a colon and white space.
    const std::size_t end = index.rfind('"', member.value.begin - 1) + 1;
    text += index.substr(done, member.begin - done) + quote_json(now);
    done = end;
  }
  return text + index.substr(done);
}

std::vector<std::string> rename_folder(const store::Checkpoint& checkpoint,
                                       const store::NameMap& names, const std::string& out,
                                       const store::WriteOptions& options) {
  std::vector<store::OutputWeights> weights;
  std::vector<store::OutputExtra> extras;
  std::vector<std::string> except;
  for (const store::WeightsFile& file : checkpoint.files()) {
    if (!changes(file, names) || checkpoint.bundle()) continue;
    weights.push_back(renamed(store::copy_of(file), names));
    except.push_back(file.name);
  }
  if (checkpoint.bundle()) {
    weights.push_back(renamed(store::copy_of_bundle(checkpoint), names));
    except = store::weight_files(checkpoint);
  }
  if (checkpoint.index()) {
    std::string text = with_new_names(checkpoint.index()->text, names);
    const std::uint64_t size = text.size();
    const std::string& name = checkpoint.index_name();
    const unsigned mode = InputFile::open(join(checkpoint.folder(), name)).mode() & 0777U;
    extras.push_back({name, store::Literal{std::move(text)}, size, mode});
    except.push_back(name);
  }
  std::deque<InputFile> opened;
  const std::vector<std::string> others = store::other_bundle_files(checkpoint);
  except.insert(except.end(), others.begin(), others.end());
  std::vector<std::string> notes = store::other_bundle_notes(others);
  for (store::OutputExtra& extra :
       store::other_files(checkpoint.folder(), except, opened, options.follow_links, notes))
    extras.push_back(std::move(extra));
  store::write_checkpoint_folder(out, weights, extras, options);
  return notes;
}

}  // namespace

store::NameMap parse_name_map(std::string_view text, const std::string& path) {
  store::NameMap names;
  std::size_t line = 0;
  for_each_line(text, [&](std::string_view row) {
    ++line;
    row = without_return(row);
    if (row.empty()) return;
    const auto pair = split_in_two(row, '\t');
    if (!pair) throw InputError(path, fmt::format("line {}: expected OLD, a tab and NEW", line));
    const std::string old(pair->first);
    if (!names.emplace(old, store::NewName{std::string(pair->second)}).second)
      throw InputError(path, fmt::format("line {}: a second new name for '{}'", line, escape(old)));
  });
  return names;
}

void check_new_names(const store::Checkpoint& checkpoint, const store::NameMap& names) {
  for (const auto& [old, now] : names) {
    if (checkpoint.find_opaque(old) == nullptr) static_cast<void>(checkpoint.get(old));
    if (now.name.empty())
      throw InputError(checkpoint.path(),
                       fmt::format("tensor '{}': the new name is empty", escape(old)));
  }
  std::map<std::string_view, std::string_view> taken;
  const auto take = [&](const auto& tensor) {
    const std::string& name = new_name(names, tensor.name);
    const auto [at, added] = taken.emplace(name, tensor.name);
    if (!added) {
      throw InputError(checkpoint.path(),
                       fmt::format("tensors '{}' and '{}' would both be called '{}'",
                                   escape(at->second), escape(tensor.name), escape(name)));
    }
  };
  for (const store::TensorInfo& tensor : checkpoint.tensors()) take(tensor);
  for (const store::OpaqueTensor& tensor : checkpoint.opaque()) take(tensor);
}

std::uint64_t apply_names(store::OutputWeights& weights, const store::NameMap& names) {
  std::uint64_t changed = 0;
  for (store::OutputTensor& tensor : weights.tensors) {
    std::string& name = tensor.info.name;
    const std::string& now = new_name(names, name);
    if (now != name) ++changed;
    name = now;
    if (!tensor.info.alias_of.empty())
      tensor.info.alias_of = std::string(new_name(names, tensor.info.alias_of));
  }
  for (store::OutputOpaque& tensor : weights.opaque) {
    const std::string now = new_name(names, tensor.info.name);
    if (now != tensor.info.name) ++changed;
    tensor.info.name = now;
    tensor.after = std::string(new_name(names, tensor.after));
  }
  return changed;
}

std::vector<std::string> rename_tensors(const store::Checkpoint& checkpoint,
                                        const store::NameMap& names, const std::string& out,
                                        store::WriteOptions options) {
  check_new_names(checkpoint, names);
  if (checkpoint.files().size() > 1) store::check_one_gguf(checkpoint);
  for (const store::WeightsFile& file : checkpoint.files()) {
    if (file.content.writer == "npy" && changes(file, names))
      throw InputError(file.file.path(), "an npy file does not contain the name of its array");
  }
  const store::WeightsWriter* other = store::writer_for_path(out);
  options.input = checkpoint.path();
  if (checkpoint.is_folder()) {
    store::check_folder_output(out);
    return rename_folder(checkpoint, names, out, options);
  }
  const store::WeightsFile& file = checkpoint.files().front();
  if (other != nullptr && other->name != file.content.writer) {
    throw UsageError(fmt::format("{} {}: the file stays {} (convert changes the format)",
                                 field("output"), escape(out), file.content.writer));
  }
  store::Metadata outside = store::markers_of(checkpoint);
  std::erase_if(outside, [&](const auto& marker) {
    return store::find_metadata(file.content.metadata, marker.first) != nullptr;
  });
  store::write_marked_file(out, renamed(store::copy_of(file), names), outside, options);
  return {};
}

}  // namespace masque::surgery
