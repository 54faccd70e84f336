#include "evaluate/check/check_invariance.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.hpp"
#include "base/random/random.hpp"
#include "mask/bit_matrix.hpp"
#include "mask/expression.hpp"
#include "model/masks.hpp"

namespace masque::evaluate {

namespace {

constexpr Index kUnlimited = std::numeric_limits<Index>::max();

std::vector<Index> count_up(Index first, Index count) {
  std::vector<Index> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

/// A text as it is, all of whose rows are compared.
CheckVariant same(const CheckInput& input, const CheckStates& expected) {
  const std::vector<Index> rows = count_up(0, input.size());
  return {input, &expected, rows, rows};
}

/// What the real tokens of a text may read.
mask::Mask own_mask(const model::Design& design, const model::ModelOptions& options,
                    const CheckInput& input) {
  if (input.mask) return *input.mask;
  const mask::Lengths lengths{input.size(), input.size()};
  if (options.masks.empty()) return model::own_mask(design, input.size());
  if (options.masks.size() > 1) {
    throw UsageError(
        "check pad: a list of masks is not supported, expected one mask for all layers");
  }
  return options.masks.front().mask.bind(lengths);
}

/// `mask` for a text with padding around it, which nobody reads but which reads every real token.
mask::Mask around(const mask::Mask& mask, Index before, Index after) {
  MASQUE_CHECK(before >= 0 && after >= 0);
  const Index n = mask.lengths().keys;
  mask::BitMatrix bits(before + n + after, before + n + after);
  for (Index i = 0; i < bits.rows(); ++i) {
    const bool real = i >= before && i < before + n;
    for (Index j = 0; j < n; ++j) bits.set(i, before + j, !real || mask.allows(i - before, j));
  }
  return mask::from_bits(std::move(bits));
}

template <class V>
void pad(std::vector<V>& values, Index before, Index after, V value) {
  values.insert(values.begin(), static_cast<std::size_t>(before), value);
  values.insert(values.end(), static_cast<std::size_t>(after), value);
}

CheckVariant padded(const CheckInput& input, const CheckStates& expected, const mask::Mask& mask,
                    Index before, Index after, TokenId token) {
  CheckVariant variant = same(input, expected);
  CheckInput& x = variant.input;
  x.mask = around(mask, before, after);
  if (x.query_mask) x.query_mask = around(*input.query_mask, before, after);
  pad(x.ids, before, after, token);
  if (!x.segments.empty()) pad(x.segments, before, after, Index{0});
  if (!x.positions.empty()) pad(x.positions, before, after, Index{0});
  variant.rows = count_up(before, input.size());
  return variant;
}

/// How long a sequence with positions of the model's own may be.
Index longest(const model::Design& design) {
  return design.max_position_embeddings > 0 ? design.max_position_embeddings : kUnlimited;
}

/// Whether padding in front changes nothing although it moves the places of real tokens.
bool counts_from_text(const model::Design& design) {
  if (design.position_offset > 0 && design.pad_token_id) return true;  // padding is not counted
  switch (design.position) {
    case model::PositionType::kLearned:
    case model::PositionType::kSinusoidal: return false;
    case model::PositionType::kRotary:
      // Angles that are rounded to float are off by another rounding elsewhere.
      return std::none_of(design.layers.begin(), design.layers.end(), [](const auto& layer) {
        return layer.rotary.values || layer.rotary.float_angles;
      });
    default: break;
  }
  // A limit tells of a table of absolute positions next to the relative terms.
  return design.max_position_embeddings == 0;
}

/// A random order of 0 … count − 1.
std::vector<std::size_t> shuffled(std::size_t count, const RandomStream& random) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = count; i > 1; --i) {
    std::swap(order[i - 1], order[random.block(i)[0] % i]);
  }
  return order;
}

std::vector<CheckStates> alone(const model::Model& model, std::span<const NumberedInput> texts) {
  std::vector<CheckStates> states;
  states.reserve(texts.size());
  for (const NumberedInput& text : texts) states.push_back(check_states(model, text.input));
  return states;
}

}  // namespace

bool reads_first_row(const model::Design& design) {
  return design.variants.latent.has_value() || design.head.shifted;
}

bool InvarianceReport::clean() const {
  return std::all_of(rows.begin(), rows.end(),
                     [](const InvarianceRow& row) { return row.differing == 0; });
}

void InvarianceReport::add(const std::string& name, std::uint64_t text, const CheckVariant& variant,
                           const Matrix<double>& differences) {
  auto row = std::find_if(rows.begin(), rows.end(),
                          [&](const InvarianceRow& known) { return known.name == name; });
  if (row == rows.end()) {
    InvarianceRow fresh;
    fresh.name = name;
    row = rows.insert(rows.end(), fresh);
  }
  ++row->texts;
  row->rows += variant.rows.size();
  std::vector<bool> differs(variant.rows.size());
  const bool first = !row->first;
  for (Index l = 0; l < differences.rows(); ++l) {
    for (std::size_t r = 0; r < differs.size(); ++r) {
      const double d = differences.view().at(l, static_cast<Index>(r));
      row->largest = std::max(row->largest, d);
      if (d <= tolerance) continue;
      differs[r] = true;
      if (first && !row->first) row->first = InvariancePlace{text, l, variant.expected_rows[r], d};
    }
  }
  row->differing += static_cast<std::uint64_t>(std::count(differs.begin(), differs.end(), true));
}

void check_padding(const model::Model& model, const model::ModelOptions& options,
                   const NumberedInput& text, const PaddingRequest& request, Index batch_tokens,
                   InvarianceReport& report) {
  const model::Design& design = model.design();
  const CheckInput& input = text.input;
  if (input.ids.empty()) return;
  const mask::Mask mask = own_mask(design, options, input);
  const CheckStates expected = check_states(model, input);
  CheckInput placed = input;
  if (placed.positions.empty()) placed.positions = count_up(0, input.size());
  std::vector<std::string> names = {"append"};
  std::vector<CheckVariant> variants = {
      padded(placed, expected, mask, 0, request.count, request.token)};
  const bool front = !reads_first_row(design);
  if (front) {
    names.emplace_back("prepend");
    variants.push_back(padded(placed, expected, mask, request.count, 0, request.token));
  }
  if (input.positions.empty() && input.size() + request.count <= longest(design)) {
    names.emplace_back("append, own positions");
    variants.push_back(padded(input, expected, mask, 0, request.count, request.token));
    if (front && counts_from_text(design)) {
      names.emplace_back("prepend, own positions");
      variants.push_back(padded(input, expected, mask, request.count, 0, request.token));
    }
  }
  const auto results = compare_variants(model, variants, batch_tokens);
  for (std::size_t v = 0; v < variants.size(); ++v) {
    report.add(names[v], text.text, variants[v], results[v]);
  }
}

void check_batch(const model::Model& model, std::span<const NumberedInput> texts,
                 Index batch_tokens, InvarianceReport& report) {
  const std::vector<CheckStates> states = alone(model, texts);
  std::vector<CheckVariant> variants;
  variants.reserve(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    variants.push_back(same(texts[i].input, states[i]));
  }
  for (const bool backwards : {false, true}) {
    if (backwards) std::reverse(variants.begin(), variants.end());
    const auto results = compare_variants(model, variants, batch_tokens);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const std::size_t at = backwards ? texts.size() - 1 - i : i;
      report.add(backwards ? "together, backwards" : "together", texts[i].text, variants[at],
                 results[at]);
    }
  }
}

void check_order(const model::Model& model, std::span<const NumberedInput> texts,
                 std::uint64_t seed, InvarianceReport& report) {
  if (texts.empty()) return;
  const std::vector<CheckStates> states = alone(model, texts);
  const auto again = [&](const char* name, std::size_t i) {
    const CheckVariant variant = same(texts[i].input, states[i]);
    report.add(name, texts[i].text, variant,
               compare_variants(model, {&variant, 1}, kUnlimited).front());
  };
  const RandomStream random(seed, "check order", texts.front().text);
  for (const std::size_t i : shuffled(texts.size(), random)) again("another order", i);
  const auto [shortest, widest] = std::minmax_element(
      texts.begin(), texts.end(), [](const NumberedInput& a, const NumberedInput& b) {
        return a.input.size() < b.input.size();
      });
  again("long after others", static_cast<std::size_t>(widest - texts.begin()));
  again("short after long", static_cast<std::size_t>(shortest - texts.begin()));
  again("long after short", static_cast<std::size_t>(widest - texts.begin()));
}

}  // namespace masque::evaluate
