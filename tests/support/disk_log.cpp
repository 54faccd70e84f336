#include "support/disk_log.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>

namespace masque::test {

namespace {

using Kind = DiskChange::Kind;

constexpr int kMostDepth = 32;

bool of_bytes(const DiskChange& c) {
  return c.kind == Kind::kBytes || c.kind == Kind::kSize || c.kind == Kind::kCut;
}

/// Chooses among changes that were not synced by random numbers that only a seed decides.
std::function<bool(std::size_t)> random_part(const std::vector<DiskChange>& loose, bool pages,
                                             std::mt19937_64& random) {
  // Whole pages or single blocks: the choice of a page is that of its first block.
  const std::uint64_t key = random();
  const std::uint64_t share = random() % 7 + 1;  // of 8
  return [&loose, pages, key, share](std::size_t i) {
    const DiskChange& change = loose[i];
    const bool bytes = pages && change.kind == Kind::kBytes;
    const std::uint64_t unit =
        bytes ? change.file * 1'000'000 + change.offset / 4096 : 7'000'000'000 + i;
    return std::mt19937_64(key ^ (unit * 0x9E3779B97F4A7C15ULL))() % 8 < share;
  };
}

}  // namespace

std::vector<DiskChange> DiskLog::parts_of(const DiskChange& change) {
  if (change.kind == Kind::kRename && change.folder != change.to_folder) {
    const std::uint64_t move = moves_++;
    return {{.kind = Kind::kArrive,
             .file = change.file,
             .folder = change.to_folder,
             .name = change.to,
             .offset = move},
            {.kind = Kind::kLeave,
             .file = change.file,
             .folder = change.folder,
             .name = change.name,
             .offset = move}};
  }
  if (change.kind == Kind::kCut) sizes_[change.file] = change.offset;
  if (change.kind == Kind::kSize)
    sizes_[change.file] = std::max(sizes_[change.file], change.offset);
  if (change.kind != Kind::kBytes) return {change};
  std::vector<DiskChange> parts;
  const std::uint64_t end = change.offset + change.bytes.size();
  if (end > sizes_[change.file]) {
    sizes_[change.file] = end;
    parts.push_back({.kind = Kind::kSize, .file = change.file, .offset = end});
  }
  for (std::uint64_t at = change.offset; at < end;) {
    const std::uint64_t size = std::min(sector_ - at % sector_, end - at);
    parts.push_back({.kind = Kind::kBytes,
                     .file = change.file,
                     .offset = at,
                     .bytes = change.bytes.substr(at - change.offset, size)});
    at += size;
  }
  return parts;
}

void DiskLog::add(const DiskChange& change) {
  if (change.kind != Kind::kAllOnDisk) {
    log_.push_back(parts_of(change));
    return;
  }
  for (const std::vector<DiskChange>& event : log_) {
    for (const DiskChange& part : event) apply(part, start_);
  }
  log_.clear();
}

std::size_t DiskLog::events_before(const std::string& name) const {
  const auto made = std::ranges::find_if(log_, [&](const std::vector<DiskChange>& event) {
    return !event.empty() && event.front().kind == Kind::kCreate && event.front().name == name;
  });
  return static_cast<std::size_t>(made - log_.begin());
}

void DiskLog::apply(const DiskChange& change, Disk& disk) {
  auto& names = disk.names[change.folder];
  switch (change.kind) {
    case Kind::kMakeFolder: disk.names[change.file]; [[fallthrough]];
    case Kind::kCreate: names[change.name] = change.file; return;
    case Kind::kBytes: {
      std::string& content = disk.contents[change.file];
      if (content.size() < change.offset + change.bytes.size())
        content.resize(change.offset + change.bytes.size(), '\0');
      content.replace(change.offset, change.bytes.size(), change.bytes);
      return;
    }
    case Kind::kSize: {
      std::string& content = disk.contents[change.file];
      if (content.size() < change.offset) content.resize(change.offset, '\0');
      return;
    }
    case Kind::kCut: disk.contents[change.file].resize(change.offset, '\0'); return;
    case Kind::kRename: {
      const auto from = names.find(change.name);
      if (from != names.end() && from->second == change.file) names.erase(from);
      names[change.to] = change.file;
      return;
    }
    case Kind::kExchange: {
      const auto a = names.find(change.name);
      const auto b = names.find(change.to);
      if (a != names.end() && b != names.end()) std::swap(a->second, b->second);
      return;
    }
    case Kind::kUnlink: names.erase(change.name); return;
    case Kind::kArrive:
      names[change.name] = change.file;
      disk.arrived[change.offset] = true;
      return;
    case Kind::kLeave: {
      const auto from = names.find(change.name);
      if (disk.arrived[change.offset] && from != names.end() && from->second == change.file)
        names.erase(from);
      return;
    }
    case Kind::kSyncFile:
    case Kind::kSyncFolder:
    case Kind::kAllOnDisk: return;
  }
}

void DiskLog::settle(Crash& crash, const DiskChange& sync) {
  const bool folder = sync.kind == Kind::kSyncFolder;
  const auto belongs = [&](const DiskChange& c) {
    return folder ? !of_bytes(c) && c.folder == sync.file : of_bytes(c) && c.file == sync.file;
  };
  // What has left a folder for good is in the other one for good.
  std::set<std::uint64_t> left;
  for (const DiskChange& c : crash.loose) {
    if (c.kind == Kind::kLeave && belongs(c)) left.insert(c.offset);
  }
  std::vector<DiskChange> rest;
  for (DiskChange& c : crash.loose) {
    if (belongs(c) || (c.kind == Kind::kArrive && left.contains(c.offset))) {
      apply(c, crash.durable);
    } else {
      rest.push_back(std::move(c));
    }
  }
  crash.loose = std::move(rest);
}

DiskLog::Crash DiskLog::crash_after(std::size_t count) const {
  Crash crash{.durable = start_, .loose = {}};
  for (std::size_t i = 0; i < count; ++i) {
    for (const DiskChange& change : log_[i]) {
      if (change.kind == Kind::kSyncFolder || change.kind == Kind::kSyncFile) {
        settle(crash, change);
      } else {
        crash.loose.push_back(change);
      }
    }
  }
  return crash;
}

void DiskLog::list(const Disk& disk, std::uint64_t folder, const std::string& path, int depth,
                   DiskState& out) {
  if (depth > kMostDepth) throw std::runtime_error("folders in a circle: " + path);
  for (const auto& [name, number] : disk.names.at(folder)) {
    if (disk.names.contains(number)) {
      out[path + name + "/"] = "";
      list(disk, number, path + name + "/", depth + 1, out);
    } else {
      const auto content = disk.contents.find(number);
      out[path + name] = content == disk.contents.end() ? "" : content->second;
    }
  }
}

DiskState DiskLog::state(const Crash& crash, const std::function<bool(std::size_t)>& survives) {
  Disk disk = crash.durable;
  // A folder without its name is nowhere, but the names in it may be on the disk.
  for (const DiskChange& change : crash.loose) {
    if (change.kind == Kind::kMakeFolder) disk.names[change.file];
  }
  for (std::size_t i = 0; i < crash.loose.size(); ++i) {
    if (survives(i)) apply(crash.loose[i], disk);
  }
  DiskState out;
  list(disk, 0, "", 0, out);
  return out;
}

void DiskLog::crashes(std::size_t count, int samples, std::uint64_t seed,
                      const std::function<void(const DiskState&)>& see) const {
  const Crash crash = crash_after(count);
  const std::size_t loose = crash.loose.size();
  if (loose <= 8) {
    for (std::uint64_t choice = 0; choice < (std::uint64_t{1} << loose); ++choice)
      see(state(crash, [&](std::size_t i) { return (choice >> i & 1U) != 0; }));
    return;
  }
  see(state(crash, [](std::size_t) { return false; }));
  see(state(crash, [](std::size_t) { return true; }));
  std::mt19937_64 random(seed * 1'000'003 + count);
  for (int sample = 0; sample < samples; ++sample)
    see(state(crash, random_part(crash.loose, sample % 2 == 0, random)));
}

DiskState DiskLog::crash(std::size_t count, std::uint64_t seed) const {
  const Crash crash = crash_after(std::min(count, log_.size()));
  const std::vector<DiskChange>& loose = crash.loose;
  std::mt19937_64 random(seed * 1'000'003 + count);
  switch (random() % 8) {
    case 0: return state(crash, [](std::size_t) { return false; });
    case 1: return state(crash, [](std::size_t) { return true; });
    case 2: {
      const std::size_t first = random() % (loose.size() + 1);
      return state(crash, [&](std::size_t i) { return i < first; });
    }
    case 3: return state(crash, [&](std::size_t i) { return of_bytes(loose[i]); });
    case 4: return state(crash, [&](std::size_t i) { return !of_bytes(loose[i]); });
    default: {
      const bool pages = random() % 2 == 0;
      return state(crash, random_part(loose, pages, random));
    }
  }
}

void write_change(std::FILE* file, const DiskChange& change) {
  const std::array<std::uint64_t, 8> head = {static_cast<std::uint64_t>(change.kind),
                                             change.file,
                                             change.folder,
                                             change.to_folder,
                                             change.offset,
                                             change.name.size(),
                                             change.to.size(),
                                             change.bytes.size()};
  bool ok = std::fwrite(head.data(), sizeof head, 1, file) == 1;
  for (const std::string* text : {&change.name, &change.to, &change.bytes})
    ok = ok && std::fwrite(text->data(), 1, text->size(), file) == text->size();
  if (!ok) throw std::runtime_error("the log of changes cannot be written");
}

DiskLog read_disk_log(const std::string& path, std::uint64_t sector) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             std::fclose);
  if (!file) throw std::runtime_error("no log of changes: " + path);
  DiskLog log(sector);
  std::array<std::uint64_t, 8> head = {};
  while (std::fread(head.data(), sizeof head, 1, file.get()) == 1) {
    DiskChange change{.kind = static_cast<Kind>(head[0]),
                      .file = head[1],
                      .folder = head[2],
                      .name = std::string(head[5], '\0'),
                      .to_folder = head[3],
                      .to = std::string(head[6], '\0'),
                      .offset = head[4],
                      .bytes = std::string(head[7], '\0')};
    for (std::string* text : {&change.name, &change.to, &change.bytes}) {
      if (std::fread(text->data(), 1, text->size(), file.get()) != text->size())
        throw std::runtime_error("the log of changes ends inside of one: " + path);
    }
    log.add(change);
  }
  return log;
}

}  // namespace masque::test
