#include "stats_parts.hpp"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/json/json_writer.hpp"
#include "base/thread/parallel.hpp"
#include "stats_output.hpp"

namespace masque::attn_probe {

namespace {

using evaluate::AttentionTotals;
using evaluate::HeadTotals;
using evaluate::LinePoints;
using evaluate::Moments;

/// More than any model has; what is read is not trusted, and every pair of heads takes memory.
constexpr std::uint64_t kMostLayers = 1000;
constexpr std::uint64_t kMostHeads = 256;

void add_sums(const Moments& m, JsonWriter& json) {
  json.begin_object().member("n", m.n).member("mean", m.mean);
  json.member("sum_squares", m.sum_squares).end_object();
}

void add_sums(const LinePoints& p, JsonWriter& json) {
  json.begin_object().member("n", p.n).member("mean_x", p.mean_x).member("mean_y", p.mean_y);
  json.member("xx", p.xx).member("xy", p.xy).member("yy", p.yy).end_object();
}

bool is_slope(const evaluate::HeadFieldInfo& field) {
  return field.per == evaluate::MeasuredPer::kSlope;
}

constexpr commands::ResultReader kReader("a line that stats --shard printed");

std::uint64_t count_below(const JsonValue& root, std::string_view name, std::uint64_t limit) {
  const std::uint64_t count = kReader.count(root, name);
  if (count >= limit)
    throw InputError(fmt::format("{}: {}, expected at most {}", name, count, limit - 1));
  return count;
}

LinePoints points_of(const JsonValue& root) {
  return {kReader.count(root, "n"),       kReader.number(root, "mean_x"),
          kReader.number(root, "mean_y"), kReader.number(root, "xx"),
          kReader.number(root, "xy"),     kReader.number(root, "yy")};
}

/// The members of a part's first line that say nothing of how it was made.
constexpr std::array<std::string_view, 7> kSizes{"command",   "shard",  "layers",          "heads",
                                                 "sentences", "tokens", commands::kLeftOut};

/// Which head it is, counted over the layers.
std::size_t read_head(const JsonValue& root, const std::vector<std::string>& tokens,
                      AttentionTotals& part) {
  const auto layer = count_below(root, "layer", static_cast<std::uint64_t>(part.layers));
  const auto head = count_below(root, "head", static_cast<std::uint64_t>(part.heads));
  const auto heads = static_cast<std::size_t>(part.heads);
  HeadTotals& own = part.head[layer * heads + head];
  for (const auto& field : evaluate::kHeadFieldTable) {
    const JsonValue& value = kReader.member(root, field.name, JsonKind::kObject);
    if (is_slope(field)) {
      own.partition = points_of(value);
    } else {
      own[field.field] = kReader.moments(value);
    }
  }
  for (const std::string& token : tokens) {
    const std::string name = std::string(kTokenField) + token;
    own.tokens.push_back(kReader.moments(kReader.member(root, name, JsonKind::kObject)));
  }
  const JsonValue& pairs = kReader.member(root, "js_to", JsonKind::kArray);
  if (pairs.items.size() != heads)
    throw InputError(fmt::format("js_to: {} heads, expected {}", pairs.items.size(), heads));
  for (std::size_t other = 0; other < heads; ++other)
    part.divergence[(layer * heads + head) * heads + other] = kReader.moments(pairs.items[other]);
  return layer * heads + head;
}

std::string token_key(std::size_t t) { return fmt::format("token_{}", t + 1); }

/// What add_tokens has written.
std::vector<std::string> tokens_of(const JsonValue& root) {
  std::vector<std::string> tokens;
  while (root.find(token_key(tokens.size())) != nullptr)
    tokens.push_back(kReader.text(root, token_key(tokens.size())));
  return tokens;
}

}  // namespace

void add_tokens(const std::vector<std::string>& tokens, JsonWriter& json) {
  for (std::size_t t = 0; t < tokens.size(); ++t) json.member(token_key(t), tokens[t]);
}

std::string part_json(const AttentionTotals& totals, std::string_view part,
                      const Provenance& provenance, const std::vector<std::string>& tokens) {
  std::vector<std::string> objects;
  const auto line = [&objects](const auto& write) {
    JsonWriter json(objects.emplace_back());
    json.begin_object();
    write(json);
    json.end_object();
  };
  line([&](JsonWriter& json) {
    json.member("command", "stats").raw(part).member("layers", totals.layers);
    json.member("heads", totals.heads).member("sentences", totals.sentences);
    json.member("tokens", totals.tokens).raw(provenance);
  });
  for (std::size_t state = 0; state < totals.state.size(); ++state) {
    line([&](JsonWriter& json) {
      json.member("state", state);
      add_sums(totals.state[state].residual, json.key("residual"));
      add_sums(totals.state[state].cosine, json.key("cosine"));
    });
  }
  const auto heads = static_cast<std::size_t>(totals.heads);
  for (std::size_t i = 0; i < totals.head.size(); ++i) {
    line([&](JsonWriter& json) {
      json.member("layer", i / heads).member("head", i % heads);
      for (const auto& field : evaluate::kHeadFieldTable) {
        json.key(field.name);
        is_slope(field) ? add_sums(totals.head[i].partition, json)
                        : add_sums(totals.head[i][field.field], json);
      }
      for (std::size_t t = 0; t < tokens.size(); ++t) {
        const std::vector<Moments>& sums = totals.head[i].tokens;
        add_sums(t < sums.size() ? sums[t] : Moments(),
                 json.key(std::string(kTokenField) + tokens[t]));
      }
      json.key("js_to").begin_array();
      for (std::size_t other = 0; other < heads; ++other)
        add_sums(totals.divergence[i * heads + other], json);
      json.end_array();
    });
  }
  return commands::part_lines(objects);
}

void StatsMerger::add(std::string_view text, const std::string& path) {
  commands::for_each_result(text, path, [&](const JsonValue& root) { add_line(root); });
  finish_part(path);
}

void StatsMerger::finish_part(const std::string& path) {
  if (lines_missing_ > 0)
    throw InputError(path, fmt::format("{} lines are missing at the end", lines_missing_));
}

void StatsMerger::add_line(const JsonValue& root) {
  if (lines_missing_ == 0) {
    if (kReader.text(root, "command") != "stats") throw InputError("command: expected stats");
    const std::string& shard = kReader.text(root, "shard");
    const auto layers = count_below(root, "layers", kMostLayers);
    const auto heads = count_below(root, "heads", kMostHeads);
    commands::ProvenanceMembers provenance = commands::provenance_of(root, kSizes);
    const AttentionTotals sizes(static_cast<Index>(layers), static_cast<Index>(heads));
    if (any_) {
      commands::check_provenance("stats", provenance, provenance_);
      if (sizes.layers != totals_.layers || sizes.heads != totals_.heads) {
        throw InputError(
            fmt::format("stats of {} layers of {} heads, expected {} of {} as in the parts before",
                        sizes.layers, sizes.heads, totals_.layers, totals_.heads));
      }
    }
    if (!shards_.add(shard))
      throw InputError(fmt::format("shard {} appears twice, expected once", escape(shard)));
    if (root.find(commands::kLeftOut) != nullptr)
      left_out_ += kReader.count(root, commands::kLeftOut);
    part_ = sizes;
    states_seen_.assign(part_.state.size(), false);
    heads_seen_.assign(part_.head.size(), false);
    part_.sentences = kReader.count(root, "sentences");
    part_.tokens = kReader.count(root, "tokens");
    provenance_ = std::move(provenance);
    tokens_ = tokens_of(root);
    lines_missing_ = part_.state.size() + part_.head.size();
    return;
  }
  if (root.find("state") != nullptr) {
    const auto state = count_below(root, "state", part_.state.size());
    if (states_seen_[state]) throw InputError(fmt::format("state {} appears twice", state));
    states_seen_[state] = true;
    part_.state[state] = {kReader.moments(kReader.member(root, "residual", JsonKind::kObject)),
                          kReader.moments(kReader.member(root, "cosine", JsonKind::kObject))};
  } else {
    const std::size_t head = read_head(root, tokens_, part_);
    if (heads_seen_[head]) throw InputError("a head appears twice, expected once");
    heads_seen_[head] = true;
  }
  if (--lines_missing_ > 0) return;
  if (!any_) totals_ = AttentionTotals(part_.layers, part_.heads);
  any_ = true;
  totals_.add(part_);
}

const AttentionTotals& StatsMerger::totals() const {
  if (!any_) throw InputError("nothing to merge: expected lines printed by stats --shard");
  shards_.check_complete();
  // What was left out may be all.
  if (totals_.sentences == 0 && left_out_ == 0)
    throw InputError("no sentences in any part, expected some with tokens");
  return totals_;
}

}  // namespace masque::attn_probe
