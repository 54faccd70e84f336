#include "records/binary_filter.hpp"

#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/file/output_folder.hpp"
#include "base/little_endian.hpp"
#include "base/thread/interrupt.hpp"
#include "base/thread/parallel.hpp"

namespace masque::records {

namespace {

constexpr std::size_t kPieceIds = 1 << 17;

/// What one piece of the input becomes, for each file.
struct Made {
  std::string ids;
  std::string labels;
  std::string pos;
  std::string original;
  std::string lengths;
  std::string dropped;
  bool has_labels = false;
  bool has_pos = false;
  bool has_original = false;
  bool has_dropped = false;

  void clear() {
    for (std::string* bytes : {&ids, &labels, &pos, &original, &lengths, &dropped}) bytes->clear();
  }
};

template <class T>
void append_raw(const T* values, std::size_t n, std::string& out) {
  out.append(reinterpret_cast<const char*>(values), n * sizeof(T));
}

class Converter {
 public:
  Converter(const BinaryFilter& filter, const Corruption& corruption, const std::string& name)
      : filter_(filter), corruption_(corruption), name_(name) {}

  /// All records of `bytes`, the first of which has number `number`.
  void convert(std::string_view bytes, std::uint64_t number, Made& made, Tally& tally) const {
    Record record;
    Scratch scratch;
    const auto size = static_cast<std::size_t>(filter_.bytes);
    const std::size_t total = bytes.size() / size;
    for (std::size_t begin = 0; begin < total; begin += filter_.length) {
      record.clear();
      record.number = number++;
      const std::size_t n = std::min(filter_.length, total - begin);
      read_ids(bytes.data() + begin * size, n, record);
      ++tally.records;
      tally.tokens_in += n;
      corruption_.apply(record, scratch, tally);
      tally.tokens_out += record.size();
      write(record, made);
    }
  }

 private:
  void read_ids(const char* bytes, std::size_t n, Record& record) const {
    record.ids.resize(n);
    const auto size_of_ids = n * static_cast<std::size_t>(filter_.bytes);
    load_binary(std::as_bytes(std::span(bytes, size_of_ids)), filter_.bytes, record.ids);
    std::int64_t highest = 0;
    for (const TokenId id : record.ids)
      highest = std::max<std::int64_t>(highest, static_cast<std::uint32_t>(id));
    const std::int64_t size = filter_.tokens.size > 0 ? filter_.tokens.size : INT32_MAX;
    if (highest < size) return;
    throw InputError(
        name_, fmt::format("record {}: id {}, expected 0 to {}", record.number, highest, size - 1));
  }

  void write(const Record& record, Made& made) const {
    const std::size_t n = record.size();
    append_binary(record.ids, filter_.bytes, made.ids);
    const auto list = [&](const Numbers& numbers, bool& has, std::string& out) {
      has = numbers.present;
      if (has) append_raw(numbers.values.data(), numbers.values.size(), out);
    };
    list(record.labels, made.has_labels, made.labels);
    list(record.pos, made.has_pos, made.pos);
    list(record.original, made.has_original, made.original);
    made.has_dropped = record.has_dropped;
    for (const DroppedToken& token : record.dropped) {
      append_raw(&token.pos, 1, made.dropped);
      append_raw(&token.id, 1, made.dropped);
    }
    const auto length = static_cast<std::uint32_t>(n);
    append_raw(&length, 1, made.lengths);
  }

  const BinaryFilter& filter_;
  const Corruption& corruption_;
  const std::string& name_;
};

/// The files, each made when something goes into it.
class Outputs {
 public:
  explicit Outputs(const BinaryFilter& filter)
      : filter_(filter), group_(filter.output, Existing::kReplace), ids_(create("")) {
    for (const std::string& suffix : binary_sidecars()) sidecars_[suffix];
    if (filter.layout == BinaryLayout::kLlmc) put(ids_, std::string(kLlmcHeaderBytes, '\0'));
  }

  void write(const Made& made) {
    put(ids_, made.ids);
    written_ += made.ids.size() / static_cast<std::size_t>(filter_.bytes);
    if (made.has_labels) put(open(".labels"), made.labels);
    if (made.has_pos) put(open(".pos"), made.pos);
    if (made.has_original) put(open(".original"), made.original);
    if (made.has_dropped) {
      put(open(".dropped"), made.dropped);
      put(open(".lengths"), made.lengths);
    }
  }

  void commit() {
    if (filter_.layout == BinaryLayout::kLlmc) {
      const std::string header = llmc_header(filter_.bytes, written_, filter_.output);
      write_at(ids_.descriptor, 0, as_bytes(header), filter_.output);
    }
    for (const auto& [suffix, file] : sidecars_) {
      if (file || !exists(filter_.output + suffix)) continue;
      throw InputError(filter_.output + suffix,
                       "left from another run and would not match the new output: remove it");
    }
    group_.commit();
  }

 private:
  struct File {
    std::string path;
    int descriptor = -1;
  };

  File create(const std::string& suffix) {
    return {filter_.output + suffix, group_.create(base_name(filter_.output) + suffix)};
  }

  const File& open(const std::string& suffix) {
    std::optional<File>& file = sidecars_.at(suffix);
    if (!file) file = create(suffix);
    return *file;
  }

  static void put(const File& file, const std::string& bytes) {
    write_all(file.descriptor, as_bytes(bytes), file.path);
  }

  const BinaryFilter& filter_;
  OutputGroup group_;
  File ids_;
  std::map<std::string, std::optional<File>> sidecars_;
  std::uint64_t written_ = 0;
};

/// The number of ids that the header states; nothing without one.
std::optional<std::uint64_t> read_header(InputStream& source, const BinaryFilter& filter) {
  if (filter.layout != BinaryLayout::kLlmc) return std::nullopt;
  std::string header(kLlmcHeaderBytes, '\0');
  header.resize(source.fill(header.data(), header.size()));
  return read_llmc_header(header, filter.bytes, source.name());
}

}  // namespace

std::vector<std::string> binary_sidecars() {
  return {".labels", ".pos", ".original", ".dropped", ".lengths"};
}

Tally filter_binary(const BinaryFilter& filter, const Corruption& corruption) {
  if (filter.length < 1) throw UsageError(fmt::format("{}: expected at least 1", field("length")));
  if (filter.bytes == 2 && filter.tokens.size > 65536) {
    throw UsageError("a vocabulary of more than 65536 ids does not fit into 16 bits: use u32");
  }
  // First: files that it finds half replaced are put back, and one of them may be the input.
  Outputs outputs(filter);
  InputStream source(filter.input);
  const std::optional<std::uint64_t> stated = read_header(source, filter);
  const Converter converter(filter, corruption, source.name());
  const int threads = filter.threads > 0 ? filter.threads : default_threads();
  const auto size = static_cast<std::size_t>(filter.bytes);
  const std::size_t piece_records = std::max<std::size_t>(1, kPieceIds / filter.length);
  const std::size_t piece_bytes = piece_records * filter.length * size;
  const std::size_t pieces = threads == 1 ? 1 : static_cast<std::size_t>(threads) * 4;
  std::string buffer(pieces * piece_bytes, '\0');
  std::vector<Made> made(pieces);
  std::vector<Tally> tallies(pieces);
  Tally tally;
  for (std::uint64_t first = filter.first_record;;) {
    throw_if_interrupted();
    const std::size_t count = source.fill(buffer.data(), buffer.size());
    if (count % size != 0) throw InputError(source.name(), "ends in the middle of an id");
    if (count == 0) break;
    if (first == filter.first_record && !stated && llmc_id_bytes({buffer.data(), count})) {
      throw InputError(source.name(),
                       fmt::format("has a header of llm.c, expected ids only, or {} {}",
                                   field("layout"), "llmc"));
    }
    const auto used = static_cast<Index>(divide_up(count, piece_bytes));
    parallel_for(used, threads, [&](Index i) {
      const auto at = static_cast<std::size_t>(i);
      made[at].clear();
      tallies[at] = Tally{};
      const std::string_view bytes =
          std::string_view(buffer).substr(0, count).substr(at * piece_bytes, piece_bytes);
      converter.convert(bytes, first + at * piece_records, made[at], tallies[at]);
    });
    for (std::size_t i = 0; i < static_cast<std::size_t>(used); ++i) {
      outputs.write(made[i]);
      tally.add(tallies[i]);
    }
    first += pieces * piece_records;
  }
  if (stated && *stated != tally.tokens_in) {
    throw InputError(source.name(), fmt::format("{} ids, expected {} as its header says",
                                                tally.tokens_in, *stated));
  }
  outputs.commit();
  return tally;
}

}  // namespace masque::records
