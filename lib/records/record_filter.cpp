#include "records/record_filter.hpp"

#include <algorithm>
#include <memory>
#include <mutex>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/input/text_source.hpp"
#include "base/json/json_text.hpp"
#include "base/string/split.hpp"
#include "base/string/utf8.hpp"
#include "base/thread/parallel.hpp"
#include "records/record_reader.hpp"
#include "records/token_folder.hpp"

namespace masque::records {

namespace {

constexpr std::size_t kFirstBad = 10;
constexpr std::string_view kBlanks = " \r";

/// Whether the input that begins with `piece` is JSON. Throws for an array, whose lines are no
/// records.
bool is_json(std::string_view piece, const std::string& name) {
  JsonDetector detector;
  if (!detector.add(piece)) return false;
  if (detector.kind() != kJsonArray) return true;
  throw InputError(
      name,
      fmt::format("{}, expected one JSON object per line, or lines of ids or of text: {} text "
                  "reads it as text",
                  detector.kind(), field("format")));
}

LineFormat guess_format(std::string_view piece, const std::string& name) {
  // JSON may begin with more than a brace: a line that cannot be read is then named.
  if (is_json(piece, name)) return LineFormat::kJson;
  LineFormat format = LineFormat::kIds;
  bool found = false;
  for_each_line(piece, [&](std::string_view line) {
    line = trim(line, kBlanksOfLine);
    if (found || line.empty()) return;
    found = true;
    if (line.find_first_not_of("0123456789 \t") != std::string_view::npos)
      format = LineFormat::kText;
  });
  return format;
}

/// What threads share: encoders, which are made once and then lent, and the counts.
class Shared {
 public:
  explicit Shared(const RecordFilter& filter) : filter_(filter) {}

  EncodeFunction borrow() {
    if (!filter_.make_encoder) return {};
    {
      const std::lock_guard lock(mutex_);
      if (!encoders_.empty()) {
        EncodeFunction encoder = std::move(encoders_.back());
        encoders_.pop_back();
        return encoder;
      }
    }
    return filter_.make_encoder();
  }
  void give_back(EncodeFunction encoder) {
    const std::lock_guard lock(mutex_);
    encoders_.push_back(std::move(encoder));
  }

  void add(const Tally& tally, const RepairedLines& repaired, const RepairedLines& surrogates,
           const std::vector<BadRecord>& bad) {
    const std::lock_guard lock(mutex_);
    result_.repaired.add(repaired);
    result_.surrogates.add(surrogates);
    result_.tally.add(tally);
    result_.bad += bad.size();
    result_.first_bad.insert(result_.first_bad.end(), bad.begin(), bad.end());
    std::sort(result_.first_bad.begin(), result_.first_bad.end(),
              [](const BadRecord& a, const BadRecord& b) { return a.line < b.line; });
    if (result_.first_bad.size() > kFirstBad) result_.first_bad.resize(kFirstBad);
  }
  FilterResult take() { return std::move(result_); }

 private:
  const RecordFilter& filter_;
  std::mutex mutex_;
  std::vector<EncodeFunction> encoders_;
  FilterResult result_;
};

/// Reads the records of a piece one after the other.
class PieceReader {
 public:
  PieceReader(const RecordFilter& filter, LineFormat format, Shared& shared)
      : filter_(filter), format_(format), shared_(shared), encode_(shared.borrow()) {}
  PieceReader(const PieceReader&) = delete;
  PieceReader& operator=(const PieceReader&) = delete;
  ~PieceReader() {
    if (encode_) shared_.give_back(std::move(encode_));
  }

  /// Whether the line holds a record. What is wrong with it is in `problem`.
  bool read(std::string_view line, Record& record, std::optional<std::string>& problem) {
    problem.reset();
    if (line.find_first_not_of(kBlanks) == std::string_view::npos) return false;
    switch (format_) {
      case LineFormat::kJson: read_json(line, record, problem); break;
      case LineFormat::kIds:
        // What looks like ids is text where everything is.
        if (filter_.text) {
          read_text(line, record, problem);
        } else {
          problem = read_ids(line, record);
        }
        break;
      default: read_text(line, record, problem); break;
    }
    if (!problem) problem = length_problem(record);
    if (!problem) problem = check_ids(record);
    return true;
  }
  /// What was not UTF-8 in all lines.
  const RepairedLines& repaired() const { return repaired_; }
  /// Lone surrogates of all lines.
  const RepairedLines& surrogates() const { return surrogates_; }

 private:
  void read_json(std::string_view line, Record& record, std::optional<std::string>& problem) {
    problem = json_.read(line, record);
    surrogates_.add_line(json_.lone_surrogates());
    if (problem) return;
    if (filter_.text) return take_text(record, problem);
    if (!json_.text()) return;
    if (!encode_) {
      problem = fmt::format("record has text but no ids: use {}", field("tokenizer"));
      return;
    }
    encode_(*json_.text(), record.ids);
  }

  /// The member `text` as the text of a record.
  void take_text(Record& record, std::optional<std::string>& problem) {
    if (!json_.text()) {
      problem = "found ids, expected text";
      return;
    }
    std::erase_if(record.other, [](const OtherField& field) { return field.key == "\"text\""; });
    record.noisy.emplace().text = *json_.text();
  }

  void read_text(std::string_view line, Record& record, std::optional<std::string>& problem) {
    record.clear();
    line = without_return(line);
    if (filter_.text) {
      repaired_.add_line(append_replacing_invalid(line, record.noisy.emplace().text));
      return;
    }
    if (!encode_) {
      problem = fmt::format("found text: use {}, or give ids or JSON", field("tokenizer"));
      return;
    }
    if (valid_utf8(line)) return encode_(line, record.ids);
    valid_.clear();
    repaired_.add_line(append_replacing_invalid(line, valid_));
    encode_(valid_, record.ids);
  }

  std::optional<std::string> check_ids(const Record& record) const {
    const TokenId size = filter_.tokens.size > 0 ? filter_.tokens.size : INT32_MAX;
    for (const TokenId id : record.ids) {
      if (id < 0 || id >= size) return fmt::format("id {}, expected 0 to {}", id, size - 1);
    }
    // With an original they say whether a token was replaced.
    if (!record.labels.present || record.original.present) return std::nullopt;
    for (std::size_t i = 0; i < record.labels.values.size(); ++i) {
      const std::int32_t label = record.labels.values[i];
      if (label == kNoLabel || (label >= 0 && label < size)) continue;
      return fmt::format("labels: {} at token {}, expected from 0 to {}, or {}", label, i, size - 1,
                         kNoLabel);
    }
    return std::nullopt;
  }

  const RecordFilter& filter_;
  LineFormat format_;
  Shared& shared_;
  EncodeFunction encode_;
  JsonRecordReader json_{filter_.text};
  std::string valid_;
  RepairedLines repaired_, surrogates_;
};

std::string name_of(const RecordFilter& filter) { return input_name(filter.input); }

/// Goes through one piece: use(record) for each good record.
template <class Use>
void go_through(const LinePiece& piece, const RecordFilter& filter, LineFormat format,
                Shared& shared, const Use& use) {
  PieceReader reader(filter, format, shared);
  Record record;
  Tally tally;
  std::vector<BadRecord> bad;
  std::uint64_t number = piece.first_line;
  for_each_line(piece.text, [&](std::string_view line) {
    record.number = number++;
    record.epoch = 0;
    std::optional<std::string> problem;
    if (!reader.read(line, record, problem)) return;
    if (!problem) problem = use(record, tally);
    if (!problem) return;
    if (filter.strict) {
      throw InputError(fmt::format("{}: line {}: {}", name_of(filter), number, *problem));
    }
    bad.push_back({number, std::move(*problem)});
  });
  shared.add(tally, reader.repaired(), reader.surrogates(), bad);
}

using Problem = std::optional<std::string>;

/// Every version of a record, corrupted and printed.
class Versions {
 public:
  Versions(const RecordFilter& filter, const Corruption* corruption)
      : filter_(filter), corruption_(corruption) {}

  Problem print(Record& record, Scratch& scratch, Tally& tally, std::string& out) const {
    if (filter_.inspect) filter_.inspect(record);
    const std::size_t before = out.size();
    const Tally tally_before = tally;
    const auto refuse = [&](Problem problem) {
      out.resize(before);
      tally = tally_before;
      return problem;
    };
    for (std::uint64_t epoch = 0; epoch < filter_.epochs; ++epoch) {
      if (filter_.epochs == 1) {
        if (Problem problem = corrupt(record, scratch, tally)) return refuse(std::move(problem));
        print_copies(record, out);
        break;
      }
      Record version = record;
      version.epoch = epoch;
      if (Problem problem = corrupt(version, scratch, tally)) return refuse(std::move(problem));
      print_copies(version, out);
    }
    return std::nullopt;
  }

 private:
  Problem corrupt(Record& record, Scratch& scratch, Tally& tally) const {
    ++tally.records;
    tally.tokens_in += record.size();
    if (corruption_ != nullptr) {
      Problem problem = input_error_message([&] { corruption_->apply(record, scratch, tally); });
      if (problem) return problem;
    }
    tally.tokens_out += record.size();
    return std::nullopt;
  }

  void print_copies(const Record& record, std::string& out) const {
    for (std::uint64_t copy = 0; copy < filter_.copies; ++copy) {
      if (filter_.print) {
        filter_.print(record, out);
      } else {
        append_record(record, out);
      }
    }
  }

  const RecordFilter& filter_;
  const Corruption* corruption_;
};

/// Lets `lines` read the token folder that is the filter's input.
void read_folder(const RecordFilter& filter, LineFormat& format, LineFilter& lines) {
  if (filter.text || (format != LineFormat::kAuto && format != LineFormat::kIds)) {
    throw UsageError(
        fmt::format("{} {}: a token folder, expected text", field("input"), filter.input));
  }
  format = LineFormat::kIds;
  const auto source = std::make_shared<TokenLines>(TokenFolder::open(filter.input),
                                                   filter.shard.value_or(Shard{}), filter.max_line);
  lines.first_line += static_cast<std::uint64_t>(source->sequence());
  lines.shard.reset();
  lines.read = [source](char* out, std::size_t size) { return source->read(out, size); };
}

/// A part of a file begins with a line of its own; what the whole is, its first line says.
LineFormat format_of(const RecordFilter& filter) {
  if (filter.format != LineFormat::kAuto) return filter.format;
  if (filter.first_record > 0) {
    throw UsageError(fmt::format("{} needs {}: the first line of a part may not show the format",
                                 field("first_record"), field("format")));
  }
  if (!filter.shard || filter.input == "-") return LineFormat::kAuto;
  const InputFile file = InputFile::open(filter.input);
  return guess_format(begin_of_text(file.descriptor(), filter.input), filter.input);
}

LineFilter line_filter(const RecordFilter& filter, LineFormat& format) {
  const bool folder = is_token_folder(filter.input);
  format = folder ? filter.format : format_of(filter);
  LineFilter lines;
  lines.threads = filter.threads;
  lines.max_line = filter.max_line;
  lines.first_line = filter.first_record;
  lines.shard = filter.shard;
  if (folder) read_folder(filter, format, lines);
  lines.sink = filter.sink;
  lines.start = [&format, &filter](const LinePiece& first) {
    if (format == LineFormat::kJson) is_json(first.text, name_of(filter));
    if (format == LineFormat::kAuto) format = guess_format(first.text, name_of(filter));
  };
  return lines;
}

}  // namespace

FilterResult filter_records(const RecordFilter& filter, const Corruption* corruption) {
  LineFormat format{};
  Shared shared(filter);
  const Versions versions(filter, corruption);
  LineFilter lines = line_filter(filter, format);
  lines.work = [&](const LinePiece& piece, std::string& out) {
    Scratch scratch;
    go_through(piece, filter, format, shared, [&](Record& record, Tally& tally) {
      return versions.print(record, scratch, tally, out);
    });
  };
  filter_lines(filter.input, lines);
  return shared.take();
}

FilterResult walk_records(const RecordFilter& filter,
                          const std::function<void(Record& record, std::string& out)>& use) {
  LineFormat format{};
  Shared shared(filter);
  LineFilter lines = line_filter(filter, format);
  lines.threads = 1;
  lines.work = [&](const LinePiece& piece, std::string& out) {
    go_through(piece, filter, format, shared, [&](Record& record, Tally& tally) -> Problem {
      ++tally.records;
      tally.tokens_in += record.size();
      return input_error_message([&] { use(record, out); });
    });
  };
  filter_lines(filter.input, lines);
  return shared.take();
}

}  // namespace masque::records
