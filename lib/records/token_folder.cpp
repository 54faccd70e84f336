#include "records/token_folder.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "base/file/file_kind.hpp"
#include "base/input/digest_line.hpp"
#include "base/json/json.hpp"
#include "base/json/json_writer.hpp"
#include "base/little_endian.hpp"
#include "base/string/decimal.hpp"
#include "base/thread/interrupt.hpp"
#include "records/binary_layout.hpp"
#include "text/tokenizer.hpp"

namespace masque::records {

namespace {

constexpr std::uint64_t kLongestInfo = 1 << 16;
constexpr std::string_view kFormat = "masque tokens";
/// Ids that are read at once.
constexpr std::size_t kRun = 1 << 16;
/// Bytes of a row of lengths.bin.
constexpr std::uint64_t kLengthRow = 3 * sizeof(std::uint64_t);
/// More different lengths than texts have.
constexpr std::uint64_t kMostLengths = 1 << 22;

/// Ids in a file.
struct IdsInFile {
  const InputFile& file;
  std::uint64_t offset = 0;  ///< of the first one
  int bytes = 2;             ///< of each
  Index vocab_size = 0;      ///< they are below it
};

/// Reads ids from number `begin` on. Returns what is wrong with one of them, or nothing.
std::optional<std::string> find_wrong_id(const IdsInFile& ids, Index begin,
                                         std::span<TokenId> out) {
  const auto width = static_cast<std::uint64_t>(ids.bytes);
  std::vector<std::byte> buffer;
  for (std::size_t done = 0; done < out.size();) {
    const std::span<TokenId> run = out.subspan(done, std::min(kRun, out.size() - done));
    const std::uint64_t at = ids.offset + (static_cast<std::uint64_t>(begin) + done) * width;
    buffer.resize(run.size() * width);
    ids.file.read(at, buffer);
    load_binary(buffer, ids.bytes, run);
    for (std::size_t i = 0; i < run.size(); ++i) {
      if (run[i] >= 0 && run[i] < ids.vocab_size) continue;
      return fmt::format("id {} of token {}, expected an id from 0 to {}",
                         static_cast<std::uint32_t>(run[i]),
                         begin + static_cast<Index>(done + i) + 1, ids.vocab_size - 1);
    }
    done += run.size();
  }
  return std::nullopt;
}

/// The same, but throws InputError.
void read_ids(const IdsInFile& ids, Index begin, std::span<TokenId> out) {
  if (const auto problem = find_wrong_id(ids, begin, out))
    throw InputError(ids.file.path(), *problem);
}

/// The member `name` of `json`, a whole number. Throws InputError about `path`.
Index count_of(const JsonValue& json, std::string_view name, const std::string& path) {
  const JsonValue* value = json.find(name);
  const auto number = value != nullptr ? value->integer() : std::nullopt;
  if (number && *number <= std::uint64_t{std::numeric_limits<Index>::max() / 8})
    return static_cast<Index>(*number);
  throw InputError(path, fmt::format("'{}': expected a whole number", name));
}

std::string digest_text(const JsonValue& json, std::string_view name, const std::string& path) {
  std::string text = json.text_of(name);
  if (text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string::npos)
    return text;
  throw InputError(path, fmt::format("'{}': expected 32 hexadecimal digits", name));
}

/// A file of the folder `folder`. Throws InputError if it has not `bytes` bytes.
InputFile open_part(const std::string& folder, const char* name, std::uint64_t bytes) {
  InputFile file = InputFile::open(join(folder, name));
  if (file.size() == bytes) return file;
  throw InputError(file.path(),
                   fmt::format("{} bytes, expected {} ({})", file.size(), bytes, kTokenInfoName));
}

}  // namespace

std::string TokenFolderInfo::json() const {
  const std::string text = json_text(
      [&](JsonWriter& json) {
        json.begin_object().member("format", kFormat).member("version", kTokenFolderVersion);
        json.member("id_bytes", id_bytes).member("vocab_size", vocab_size);
        json.member("tokenizer", tokenizer).member("sequences", sequences);
        json.member("tokens", tokens).member("lines", lines).member("digest", digest);
        json.end_object();
      },
      JsonLayout::kLines);
  return with_digest_member(text + "\n");
}

TokenFolderInfo TokenFolderInfo::read(const std::string& folder) {
  if (is_folder(folder) && !is_token_folder(folder)) {
    throw InputError(folder,
                     exists(join(folder, kTokenProgressName))
                         ? fmt::format("a token folder that is not complete; tok encode with "
                                       "{} continues it",
                                       field("resume"))
                         : fmt::format("is a folder without {}, expected a file or a token folder",
                                       kTokenInfoName));
  }
  const InputFile file = InputFile::open(join(folder, kTokenInfoName));
  const std::string& path = file.path();
  const std::string text = file.read_all(kLongestInfo);
  const JsonValue json = parse_json_file(text, path);
  if (json.text_of("format") != kFormat)
    throw InputError(path, fmt::format("no token folder, expected \"format\": \"{}\"", kFormat));
  if (const Index version = count_of(json, "version", path);
      version != static_cast<Index>(kTokenFolderVersion)) {
    throw InputError(path, fmt::format("version {}, expected {}", version, kTokenFolderVersion));
  }
  check_digest_member(text, path);
  TokenFolderInfo info;
  info.id_bytes = static_cast<int>(std::min<Index>(count_of(json, "id_bytes", path), 8));
  info.vocab_size = count_of(json, "vocab_size", path);
  info.tokenizer = digest_text(json, "tokenizer", path);
  info.sequences = count_of(json, "sequences", path);
  info.tokens = count_of(json, "tokens", path);
  info.lines = count_of(json, "lines", path);
  info.digest = digest_text(json, "digest", path);
  if (info.id_bytes != 2 && info.id_bytes != 4)
    throw InputError(path, fmt::format("'id_bytes': found {}, expected 2 or 4", info.id_bytes));
  if (info.vocab_size < 1 || info.vocab_size > Index{std::numeric_limits<TokenId>::max()} ||
      (info.id_bytes == 2 && id_bytes_of(info.vocab_size) != 2)) {
    throw InputError(path, fmt::format("'vocab_size': {} ids do not fit {} bytes", info.vocab_size,
                                       info.id_bytes));
  }
  if (info.tokens < info.sequences)
    throw InputError(path, fmt::format("{} tokens of {} sequences, expected at least one of each",
                                       info.tokens, info.sequences));
  return info;
}

void TokenFolderInfo::check_tokenizer(const std::string& folder,
                                      const text::Tokenizer& used) const {
  // Ids without texts are those of any tokenizer.
  const bool same = text::has_ids_only(used) || tokenizer == text::tokenizer_digest(used);
  if (same && vocab_size <= static_cast<Index>(used.size())) return;
  throw InputError(folder, fmt::format("made with another tokenizer than {}, expected the same",
                                       used.parts().path));
}

bool is_token_folder(const std::string& path) {
  return path != "-" && is_folder(path) && exists(join(path, kTokenInfoName));
}

int id_bytes_of(Index vocab_size) {
  return vocab_size <= Index{std::numeric_limits<std::uint16_t>::max()} + 1 ? 2 : 4;
}

std::shared_ptr<const TokenFolder> TokenFolder::open(const std::string& path) {
  std::shared_ptr<TokenFolder> folder(new TokenFolder(path, TokenFolderInfo::read(path)));
  folder->read_lengths();
  folder->check_last_end();
  return folder;
}

TokenFolder::TokenFolder(std::string path, TokenFolderInfo info)
    : path_(std::move(path)),
      info_(std::move(info)),
      ids_(open_part(
          path_, kTokenIdsName,
          static_cast<std::uint64_t>(info_.tokens) * static_cast<std::uint64_t>(info_.id_bytes))),
      ends_(open_part(path_, kTokenEndsName,
                      static_cast<std::uint64_t>(info_.sequences) * sizeof(std::uint64_t))) {}

void TokenFolder::read_lengths() {
  const InputFile file = InputFile::open(join(path_, kTokenLengthsName));
  const std::string rows = file.read_all(kMostLengths * kLengthRow);
  Index sequences = 0, tokens = 0;
  for (std::size_t at = 0; at + kLengthRow <= rows.size(); at += kLengthRow) {
    const auto number = [&](std::size_t column) {
      return load_number<std::int64_t>(rows.data() + at + column * sizeof(std::int64_t));
    };
    const LengthCount row{number(0), number(1), number(2)};
    const Index before = lengths_.empty() ? 0 : lengths_.back().length;
    if (row.length <= before || row.count < 1 || row.count > info_.sequences - sequences ||
        row.length > (info_.tokens - tokens) / row.count || row.first < 0 ||
        row.first >= info_.sequences) {
      throw InputError(file.path(), fmt::format("row {}: expected a length above {}, a count and "
                                                "the first sequence, of {} sequences",
                                                std::ssize(lengths_) + 1, before, info_.sequences));
    }
    sequences += row.count;
    tokens += row.count * row.length;
    lengths_.push_back(row);
  }
  if (rows.size() % kLengthRow != 0 || sequences != info_.sequences || tokens != info_.tokens) {
    throw InputError(
        file.path(),
        fmt::format("{} bytes of {} sequences and {} tokens, expected rows of {} bytes "
                    "of {} and {}",
                    rows.size(), sequences, tokens, kLengthRow, info_.sequences, info_.tokens));
  }
}

std::uint64_t TokenFolder::end_of(Index sequence) const {
  std::array<std::byte, sizeof(std::uint64_t)> number{};
  ends_.read(static_cast<std::uint64_t>(sequence) * number.size(), number);
  return load_number<std::uint64_t>(number.data());
}

void TokenFolder::check_last_end() const {
  if (info_.sequences == 0) return;
  const std::uint64_t end = end_of(info_.sequences - 1);
  if (end == static_cast<std::uint64_t>(info_.tokens)) return;
  throw InputError(ends_.path(),
                   fmt::format("the last sequence ends after token {}, expected {} ({})", end,
                               info_.tokens, kTokenInfoName));
}

Index TokenFolder::begin(Index sequence) const {
  MASQUE_CHECK(0 <= sequence && sequence <= info_.sequences);
  if (sequence == 0) return 0;
  const std::uint64_t end = end_of(sequence - 1);
  // A damaged one is an empty sequence, or one that is too long.
  return static_cast<Index>(std::min(end, static_cast<std::uint64_t>(info_.tokens)));
}

std::optional<std::string> TokenFolder::find_wrong_length(Index sequence, Index length) const {
  const Index most = lengths_.back().length;
  if (length >= 1 && length <= most) return std::nullopt;
  return fmt::format("sequence {} of {} tokens, expected 1 to {} ({})", sequence + 1, length, most,
                     kTokenLengthsName);
}

Index TokenFolder::length(Index sequence) const {
  const Index length = begin(sequence + 1) - begin(sequence);
  if (const auto problem = find_wrong_length(sequence, length))
    throw InputError(ends_.path(), *problem);
  return length;
}

void TokenFolder::read(Index begin, std::span<TokenId> out) const {
  MASQUE_CHECK(begin >= 0 && begin + std::ssize(out) <= info_.tokens);
  read_ids({ids_, 0, info_.id_bytes, info_.vocab_size}, begin, out);
}

std::optional<std::string> TokenFolder::find_damage(
    const std::function<void(std::span<const TokenId>)>& visit) const {
  const auto message = [&](const char* file, std::string_view problem) {
    return InputError(join(path_, file), problem).message();
  };
  TokenDigest digest;
  LengthTally lengths;
  // Sequences may be short: the ends of many and the ids of several are read at once.
  constexpr Index kEndsAtOnce = 1 << 13;
  std::vector<std::byte> ends;
  std::vector<TokenId> some;  // ids from some_begin on
  Index some_begin = 0;
  Index begin = 0;
  for (Index i = 0; i < info_.sequences; ++i) {
    const auto at = static_cast<std::size_t>(i % kEndsAtOnce) * sizeof(std::uint64_t);
    if (at == 0) {
      ends.resize(static_cast<std::size_t>(std::min(kEndsAtOnce, info_.sequences - i)) *
                  sizeof(std::uint64_t));
      ends_.read(static_cast<std::uint64_t>(i) * sizeof(std::uint64_t), ends);
    }
    const auto end = static_cast<Index>(std::min(load_number<std::uint64_t>(ends.data() + at),
                                                 static_cast<std::uint64_t>(info_.tokens)));
    const Index length = end - begin;
    if (const auto problem = find_wrong_length(i, length)) return message(kTokenEndsName, *problem);
    if (end > some_begin + std::ssize(some)) {
      throw_if_interrupted();
      some_begin = begin;
      const Index most = std::min(static_cast<Index>(kRun), info_.tokens - begin);
      some.resize(static_cast<std::size_t>(std::max(length, most)));
      if (const auto problem =
              find_wrong_id({ids_, 0, info_.id_bytes, info_.vocab_size}, begin, some))
        return message(kTokenIdsName, *problem);
    }
    const std::span<const TokenId> ids = std::span(some).subspan(
        static_cast<std::size_t>(begin - some_begin), static_cast<std::size_t>(length));
    digest.add(ids);
    lengths.add(length);
    begin = end;
    if (visit) visit(ids);
  }
  if (lengths.counts() != lengths_)
    return message(kTokenLengthsName, "other lengths than those of the sequences");
  if (digest.digest() != info_.digest)
    return message(kTokenInfoName, "the digest is not that of the ids");
  return std::nullopt;
}

bool is_token_file(const std::string& path) {
  using namespace std::string_view_literals;
  if (!path.ends_with(".bin") || !exists(path) || is_folder(path) || is_stream(path)) return false;
  const InputFile file = InputFile::open(path);
  std::string first(std::min<std::uint64_t>(file.size(), 4096), '\0');
  file.read(0, std::as_writable_bytes(std::span(first)));
  // PyTorch gives its checkpoints the same name: zip files, before that pickles of a magic number.
  return !first.starts_with("PK\x03\x04"sv) && !first.starts_with("\x80\x02\x8A\x0A\x6C\xFC"sv) &&
         !may_be_text(first);
}

namespace {

/// Ids without boundaries.
class TokenFile final : public TokenSource {
 public:
  TokenFile(const std::string& path, Index vocab_size)
      : file_(InputFile::open(path)), vocab_size_(vocab_size), bytes_(id_bytes_of(vocab_size)) {
    std::uint64_t bytes = file_.size();
    std::string header(std::min<std::uint64_t>(bytes, kLlmcHeaderBytes), '\0');
    file_.read(0, std::as_writable_bytes(std::span(header)));
    std::optional<std::uint64_t> stated;
    if (const auto found = llmc_id_bytes(header)) {
      bytes_ = *found;
      stated = read_llmc_header(header, bytes_, path);
      offset_ = kLlmcHeaderBytes;
      bytes -= offset_;
    }
    const auto width = static_cast<std::uint64_t>(bytes_);
    const std::uint64_t count = bytes / width;
    if (bytes % width != 0 || count == 0 || (stated && *stated != count)) {
      throw InputError(path, fmt::format("{} bytes of ids, expected {}", bytes,
                                         stated ? fmt::format("{} ids of {} bytes (llm.c's header)",
                                                              *stated, bytes_)
                                                : fmt::format("ids of {} bytes", bytes_)));
    }
    tokens_ = static_cast<Index>(count);
  }

  Index sequences() const override { return 1; }
  Index tokens() const override { return tokens_; }
  bool has_boundaries() const override { return false; }
  Index begin(Index sequence) const override { return sequence == 0 ? 0 : tokens_; }
  void read(Index begin, std::span<TokenId> out) const override {
    MASQUE_CHECK(begin >= 0 && begin + std::ssize(out) <= tokens_);
    read_ids({file_, offset_, bytes_, vocab_size_}, begin, out);
  }
  std::vector<LengthCount> lengths() const override { return {{tokens_, 1, 0}}; }
  std::string digest() const override {
    constexpr Index kPlaces = 1024;
    constexpr Index kIds = 1024;
    TokenDigest digest;
    std::vector<TokenId> ids;
    for (Index i = 0; i < kPlaces; ++i) {
      const Index begin = std::max<Index>(tokens_ - kIds, 0) * i / (kPlaces - 1);
      ids.resize(static_cast<std::size_t>(std::min(kIds, tokens_ - begin)));
      read(begin, ids);
      digest.add(ids);
    }
    return xxh3_of(as_bytes(fmt::format("{} {}", tokens_, digest.digest())));
  }

 private:
  InputFile file_;
  Index vocab_size_;
  int bytes_;
  std::uint64_t offset_ = 0;
  Index tokens_ = 0;
};

}  // namespace

std::shared_ptr<const TokenSource> open_token_file(const std::string& path, Index vocab_size) {
  return std::make_shared<const TokenFile>(path, vocab_size);
}

void reserve_ids(std::string& out, std::size_t count) {
  if (count > (1 << 16)) out.reserve(out.size() + count * (kDecimalChars + 1));
}

void append_ids(std::string& out, std::span<const TokenId> ids, char between) {
  constexpr std::size_t kAtOnce = 512;
  std::array<char, kAtOnce*(kDecimalChars + 1)> buffer;
  reserve_ids(out, ids.size());
  for (std::size_t begin = 0; begin < ids.size(); begin += kAtOnce) {
    const std::size_t end = std::min(begin + kAtOnce, ids.size());
    char* at = buffer.data();
    for (std::size_t i = begin; i < end; ++i) {
      if (i > 0) *at++ = between;
      at = write_decimal(ids[i], at);
    }
    out.append(buffer.data(), static_cast<std::size_t>(at - buffer.data()));
  }
}

TokenLines::TokenLines(std::shared_ptr<const TokenFolder> folder, const Shard& shard,
                       std::uint64_t max_line)
    : folder_(std::move(folder)),
      sequence_(part(shard.index - 1, shard)),
      end_(part(shard.index, shard)),
      max_line_(max_line) {}

Index TokenLines::part(std::uint64_t index, const Shard& shard) const {
  const auto all = static_cast<std::uint64_t>(folder_->sequences());
  return static_cast<Index>(all / shard.count * index + std::min(index, all % shard.count));
}

std::size_t TokenLines::read(char* out, std::size_t size) {
  while (text_.size() - used_ < size && sequence_ < end_) {
    const auto length = static_cast<std::uint64_t>(folder_->length(sequence_));
    // An id and a space are at least two bytes.
    if (2 * length > max_line_ + 1) {
      throw InputError(
          fmt::format("sequence {} of {} tokens: a line of more than {} bytes, expected "
                      "fewer ({})",
                      sequence_ + 1, length, max_line_, field("max_line")));
    }
    text_.erase(0, std::exchange(used_, 0));
    ids_.resize(length);
    folder_->read(folder_->begin(sequence_++), ids_);
    append_ids(text_, ids_, ' ');
    text_ += '\n';
  }
  const std::size_t count = text_.copy(out, size, used_);
  used_ += count;
  return count;
}

}  // namespace masque::records
