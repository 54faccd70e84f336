#include "records/token_folder_writer.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "base/digest/hash.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/os.hpp"
#include "base/file/output_file.hpp"
#include "base/file/output_folder.hpp"
#include "base/input/digest_line.hpp"
#include "base/json/json.hpp"
#include "base/json/json_writer.hpp"
#include "base/little_endian.hpp"
#include "base/thread/interrupt.hpp"
#include "base/thread/parallel.hpp"
#include "records/binary_layout.hpp"

namespace masque::records {

namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;
constexpr std::uint64_t kLongestProgress = 1 << 16;
constexpr std::string_view kIsThere = "is there, expected a new folder";

std::string progress_json(const TokenFolderInfo& info, const std::string& settings,
                          const TokenDigest& digest, const TokenProgress& progress) {
  const std::string text = json_text(
      [&](JsonWriter& json) {
        json.begin_object().member("version", kTokenFolderVersion);
        json.member("vocab_size", info.vocab_size).member("tokenizer", info.tokenizer);
        json.member("sequences", progress.sequences).member("tokens", progress.tokens);
        json.member("lines", progress.lines).member("text", progress.text);
        json.member("settings", settings).member("digest", digest.digest()).end_object();
      },
      JsonLayout::kLines);
  return with_digest_member(text + "\n");
}

/// Whether `path` is still the name of the open file `fd`.
bool has_name(int fd, const std::string& path) {
  struct stat opened = {}, named = {};
  if (os::stat_fd(fd, opened) != 0 ||
      (os::stat_at(AT_FDCWD, path.c_str(), named, 0) != 0 && errno != ENOENT))
    throw system_error(path, "cannot be read", errno);
  return opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/// Opens a file to write, or makes it, and locks it.
Descriptor open_part(const std::string& path) {
  const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_CREAT;
  Descriptor fd(os::open_at(AT_FDCWD, path.c_str(), flags, 0666));
  if (!fd) throw system_error(path, "cannot be opened", errno);
  const bool locked = os::lock_exclusive(fd.get()) == 0;
  // Who had the lock before may have removed the folder.
  if ((!locked && errno == EWOULDBLOCK) || !has_name(fd.get(), path))
    throw InputError(path, "another process is writing it");
  return fd;
}

void remove_folder(const std::string& path) {
  remove_tree(open_folder(folder_of(path)).get(), base_name(path));
}

/// Whether the folder has nothing but what a run leaves that was killed before it saved anything:
/// the files of ids and ends, still empty.
bool has_nothing_saved(const std::string& path) {
  return is_folder(path) && std::ranges::all_of(list_files(path), [&](const std::string& name) {
           return (name == kTokenIdsName || name == kTokenEndsName) &&
                  InputFile::open(join(path, name)).size() == 0;
         });
}

void sync_part(const Descriptor& fd, const std::string& path) {
  if (os::sync(fd.get()) != 0) throw system_error(path, "cannot be written", errno);
}

}  // namespace

TokenFolderWriter::TokenFolderWriter(std::string path, Index vocab_size, std::string tokenizer,
                                     TokenFolderStart start, std::string settings)
    : path_(std::move(path)), settings_(std::move(settings)) {
  info_.vocab_size = vocab_size;
  info_.tokenizer = std::move(tokenizer);
  info_.id_bytes = id_bytes_of(vocab_size);
  const Descriptor parent = open_folder(folder_of(path_));
  const bool new_folder = os::mkdir_at(parent.get(), base_name(path_).c_str(), 0777) == 0;
  if (!new_folder && errno != EEXIST) throw system_error(path_, "cannot be made", errno);
  if (!new_folder && start == TokenFolderStart::kNew && is_taken(path_)) refuse_taken();
  if (!new_folder && exists(join(path_, kTokenInfoName))) {
    open_complete();
    return;
  }
  if (!new_folder && !has_nothing_saved(path_)) check_progress();
  // Until ids.bin is locked, another process may begin the folder, complete it or leave it.
  bool is_mine = false;
  const std::exception_ptr failed = caught([&] {
    if (new_folder) sync_part(parent, path_);
    // The files first: what the progress says is in them.
    ids_ = open_part(join(path_, kTokenIdsName));
    const bool begins = has_nothing_saved(path_);
    is_mine = new_folder && begins;
    if (!begins && start == TokenFolderStart::kNew) refuse_taken();
    if (exists(join(path_, kTokenInfoName))) {
      ids_ = Descriptor();
      return open_complete();
    }
    ends_ = open_part(join(path_, kTokenEndsName));
    if (begins) return save(0, {});
    check_progress();
    restore();
  });
  if (!failed) return;
  if (new_folder && !is_mine) {
    // What failed may have been the look at whose folder it is: once more.
    static_cast<void>(caught([&] {
      if (!ids_) ids_ = open_part(join(path_, kTokenIdsName));
      is_mine = has_nothing_saved(path_);
    }));
  }
  if (is_mine) {
    remove_folder(path_);
  } else if (new_folder) {
    os::rmdir_at(parent.get(), base_name(path_).c_str());  // if it is still empty
  }
  std::rethrow_exception(failed);
}

void TokenFolderWriter::refuse_taken() const {
  throw InputError(path_, fmt::format("{}, or {}", kIsThere, field("resume")));
}

void TokenFolderWriter::check_progress() const {
  if (exists(join(path_, kTokenProgressName))) return;
  throw InputError(path_, fmt::format("has no {}, expected a folder that an interrupted run left",
                                      kTokenProgressName));
}

void TokenFolderWriter::open_complete() {
  complete_ = TokenFolderInfo::read(path_);
  check_tokenizer(path_, complete_->vocab_size, complete_->tokenizer);
}

void TokenFolderWriter::check_tokenizer(const std::string& path, Index vocab_size,
                                        std::string_view tokenizer) const {
  if (vocab_size != info_.vocab_size || tokenizer != info_.tokenizer)
    throw InputError(path, "written with another tokenizer, expected the same");
}

void TokenFolderWriter::restore() {
  const InputFile file = InputFile::open(join(path_, kTokenProgressName));
  const std::string text = file.read_all(kLongestProgress);
  const JsonValue json = parse_json_file(text, file.path());
  check_digest_member(text, file.path());
  const auto number = [&](std::string_view name) {
    const JsonValue* value = json.find(name);
    const auto found = value != nullptr ? value->integer() : std::nullopt;
    if (!found || *found > std::uint64_t{1} << 60)
      throw InputError(file.path(), fmt::format("'{}': expected a whole number", name));
    return static_cast<Index>(*found);
  };
  if (number("version") != static_cast<Index>(kTokenFolderVersion))
    throw InputError(file.path(), fmt::format("version {}, expected {}", number("version"),
                                              kTokenFolderVersion));
  check_tokenizer(file.path(), number("vocab_size"), json.text_of("tokenizer"));
  if (json.text_of("settings") != settings_)
    throw InputError(file.path(), fmt::format("written with the options '{}', expected '{}'",
                                              escape(json.text_of("settings")), settings_));
  const TokenProgress progress{number("sequences"), number("tokens"), number("lines"),
                               json.text_of("text")};
  // Read back what was saved; what was written after it goes away.
  const InputFile ids = InputFile::open(join(path_, kTokenIdsName));
  const InputFile ends = InputFile::open(join(path_, kTokenEndsName));
  const auto width = static_cast<std::uint64_t>(info_.id_bytes);
  const auto ids_size = static_cast<std::uint64_t>(progress.tokens) * width;
  const auto ends_size = static_cast<std::uint64_t>(progress.sequences) * sizeof(std::uint64_t);
  if (ids.size() < ids_size || ends.size() < ends_size)
    throw InputError(path_, fmt::format("fewer ids than {} says", kTokenProgressName));
  std::vector<TokenId> sequence;
  std::vector<std::byte> bytes;
  for (Index i = 0; i < progress.sequences; ++i) {
    if (i % 1024 == 0) throw_if_interrupted();
    std::uint64_t end = 0;
    ends.read(static_cast<std::uint64_t>(i) * sizeof end,
              std::as_writable_bytes(std::span(&end, 1)));
    const auto begin = static_cast<std::uint64_t>(info_.tokens);
    if (end <= begin || end > static_cast<std::uint64_t>(progress.tokens))
      throw InputError(ends.path(),
                       fmt::format("sequence {} ends after token {}, expected {} to {}", i + 1, end,
                                   begin + 1, progress.tokens));
    sequence.resize(end - begin);
    bytes.resize(sequence.size() * width);
    ids.read(begin * width, bytes);
    load_binary(bytes, info_.id_bytes, sequence);
    count(sequence);
  }
  if (info_.tokens != progress.tokens)
    throw InputError(ends.path(), fmt::format("the last sequence ends after token {}, expected {}",
                                              info_.tokens, progress.tokens));
  if (digest_.digest() != json.text_of("digest"))
    throw InputError(path_,
                     fmt::format("other ids than those that were saved ({})", kTokenProgressName));
  if (os::truncate(ids_.get(), static_cast<off_t>(ids_size)) != 0)
    throw system_error(ids.path(), "cannot be written", errno);
  if (os::truncate(ends_.get(), static_cast<off_t>(ends_size)) != 0)
    throw system_error(ends.path(), "cannot be written", errno);
  saved_ = progress;
}

void TokenFolderWriter::count(std::span<const TokenId> ids) {
  info_.tokens += std::ssize(ids);
  ++info_.sequences;
  digest_.add(ids);
  lengths_.add(std::ssize(ids));
}

void TokenFolderWriter::add(std::span<const TokenId> ids) {
  MASQUE_CHECK(!ids.empty() && std::ranges::all_of(ids, [&](TokenId id) {
    return id >= 0 && id < info_.vocab_size;
  }));
  if (complete()) return count(ids);
  append_binary(ids, info_.id_bytes, ids_buffer_);
  count(ids);
  append_number(ends_buffer_, static_cast<std::uint64_t>(info_.tokens));
  if (ids_buffer_.size() + ends_buffer_.size() >= kBufferBytes) flush();
}

void TokenFolderWriter::flush() {
  const auto ids_size =
      static_cast<std::uint64_t>(info_.tokens) * static_cast<std::uint64_t>(info_.id_bytes);
  const auto ends_size = static_cast<std::uint64_t>(info_.sequences) * sizeof(std::uint64_t);
  write_at(ids_.get(), ids_size - ids_buffer_.size(), as_bytes(ids_buffer_),
           join(path_, kTokenIdsName));
  write_at(ends_.get(), ends_size - ends_buffer_.size(), as_bytes(ends_buffer_),
           join(path_, kTokenEndsName));
  ids_buffer_.clear();
  ends_buffer_.clear();
}

void TokenFolderWriter::save(Index lines, std::string text) {
  if (complete()) return;
  flush();
  sync_part(ids_, join(path_, kTokenIdsName));
  sync_part(ends_, join(path_, kTokenEndsName));
  saved_ = {info_.sequences, info_.tokens, lines, std::move(text)};
  replace_text(join(path_, kTokenProgressName), progress_json(info_, settings_, digest_, saved_));
}

void TokenFolderWriter::commit(Index lines) {
  if (complete()) {
    if (digest_.digest() == complete_->digest && lines == complete_->lines) return;
    throw InputError(path_,
                     "is complete and holds the ids of another text, expected the same text");
  }
  if (info_.sequences == 0) {
    remove_folder(path_);
    throw InputError("no tokens, expected a text");
  }
  flush();
  sync_part(ids_, join(path_, kTokenIdsName));
  sync_part(ends_, join(path_, kTokenEndsName));
  std::string rows;
  for (const LengthCount& row : lengths_.counts())
    append_number(rows, static_cast<std::uint64_t>(row.length),
                  static_cast<std::uint64_t>(row.count), static_cast<std::uint64_t>(row.first));
  replace_text(join(path_, kTokenLengthsName), rows);
  info_.lines = lines;
  info_.digest = digest_.digest();
  replace_text(join(path_, kTokenInfoName), info_.json());
  const Descriptor folder = open_folder(path_);
  if (os::unlink_at(folder.get(), kTokenProgressName) != 0)
    throw system_error(join(path_, kTokenProgressName), "cannot be removed", errno);
}

void merge_token_folders(const std::vector<std::string>& folders, const std::string& output) {
  MASQUE_CHECK(!folders.empty());
  std::vector<std::shared_ptr<const TokenFolder>> parts;
  for (const std::string& folder : folders) {
    parts.push_back(TokenFolder::open(folder));
    if (parts.back()->info().tokenizer != parts.front()->info().tokenizer ||
        parts.back()->info().vocab_size != parts.front()->info().vocab_size)
      throw InputError(folder, fmt::format("made with another tokenizer than {}", folders.front()));
  }
  if (exists(output) && !exists(join(output, kTokenProgressName)) && !has_nothing_saved(output))
    throw InputError(output, std::string(kIsThere));
  const TokenFolderInfo& first = parts.front()->info();
  std::string digests;
  for (const auto& part : parts) digests += part->digest();
  // A process that was killed left a folder with the same settings.
  TokenFolderWriter writer(output, first.vocab_size, first.tokenizer, TokenFolderStart::kResume,
                           fmt::format("merge {}", xxh3_of(std::as_bytes(std::span(digests)))));
  const std::exception_ptr failed = caught([&] {
    Index lines = 0;
    const Index saved = writer.saved().sequences;
    Index sequences = 0;
    for (const auto& part : parts) {
      sequences += part->sequences();
      if (sequences <= saved) {
        lines += part->info().lines;
        continue;
      }
      // The new folder's digest would be right for wrong ids.
      const auto damage = part->find_damage([&](std::span<const TokenId> ids) { writer.add(ids); });
      if (damage) throw InputError(*damage);
      lines += part->info().lines;
      writer.save(lines, {});
    }
    writer.commit(lines);
  });
  if (!failed) return;
  // Another process may have completed it.
  if (!writer.complete()) remove_folder(output);
  std::rethrow_exception(failed);
}

}  // namespace masque::records
