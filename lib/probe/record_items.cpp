#include "probe/record_items.hpp"

#include <limits>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/line_filter.hpp"
#include "base/parallel.hpp"
#include "mask/expression.hpp"
#include "records/record_reader.hpp"

namespace masque::probe {

namespace {

std::vector<Index> indexes(const records::Numbers& numbers) {
  return numbers.present ? std::vector<Index>(numbers.values.begin(), numbers.values.end())
                         : std::vector<Index>();
}

/// Throws InputError for what the model cannot run.
void check(const DumpItem& item, const model::Design& design) {
  const auto all_below = [](std::string_view name, const auto& values, Index low, Index limit) {
    for (const Index value : values) {
      if (value < low || value >= limit)
        throw InputError(fmt::format("{} {}, expected {} to {}", name, value, low, limit - 1));
    }
  };
  if (item.ids.empty()) throw InputError("no ids, expected some");
  all_below("token id", item.ids, 0, design.vocab_size);
  if (design.type_vocab_size > 0) all_below("seg", item.segments, 0, design.type_vocab_size);
  const Index longest = design.max_position_embeddings;
  const Index unlimited = std::numeric_limits<Index>::max();
  all_below("pos", item.positions, -design.position_offset, longest > 0 ? longest : unlimited);
  if (longest > 0 && item.positions.empty() && std::ssize(item.ids) > longest)
    throw InputError(fmt::format("{} ids, expected at most {}", item.ids.size(), longest));
}

DumpItem item_of(const records::Record& record, std::uint64_t number, const model::Design& design) {
  DumpItem item{.number = number,
                .ids = record.ids,
                .segments = indexes(record.seg),
                .positions = indexes(record.pos)};
  check(item, design);
  if (!record.mask) return item;
  const auto length = static_cast<Index>(record.ids.size());
  const auto problem = usage_problem_of([&] {
    const MaskExpression mask = parse_mask(*record.mask);
    const Lengths own = mask.own_lengths().value_or(Lengths{length, length});
    if (own != Lengths{length, length}) {
      throw UsageError(fmt::format("'{}' is for {} × {} tokens, found {} ids", mask.text(),
                                   own.queries, own.keys, length));
    }
    item.mask = mask.bind(own);
  });
  if (problem) throw InputError("mask: " + *problem);
  return item;
}

}  // namespace

void each_record_item(const RecordInput& input, const model::Design& design,
                      const std::function<void(DumpItem&&)>& use) {
  records::JsonRecordReader reader;
  records::Record record;
  std::string padded;
  LineFilter filter{.threads = 1, .max_line = input.max_line};
  if (input.shard) filter.shard = parse_shard(*input.shard);
  filter.work = [&](const LinePiece& piece, std::string&) {
    std::uint64_t number = piece.first_line;
    for_each_line(piece.text, [&](std::string_view line) {
      ++number;
      if (line.empty()) return;
      padded.assign(line);
      padded.resize(line.size() + kLinePadding);
      record.clear();
      std::optional<DumpItem> item;
      const auto problem = problem_of([&] {
        // The filter looks at the lengths of very long lines only.
        if (line.size() > input.max_line)
          throw InputError(fmt::format("more than {} bytes", input.max_line));
        const auto unread = reader.read(std::string_view(padded).substr(0, line.size()), record);
        if (unread) throw InputError(*unread);
        item = item_of(record, input.first_record + number - 1, design);
      });
      if (problem) throw InputError(input.name, fmt::format("line {}: {}", number, *problem));
      use(std::move(*item));
    });
  };
  filter.sink = [](std::string_view) {};
  filter_lines(input.path, filter);
}

}  // namespace masque::probe
