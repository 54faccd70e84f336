// Any bytes as a file with a mask: rows of '#', PBM, JSON, numbers, an array; then every convention
// on what it holds. A mask that is read reads back from what is written of it.
#include "base/json/json.hpp"
#include "exchange/convention.hpp"
#include "exchange/mask_file.hpp"
#include "exchange/matrix.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "mask/bit_matrix.hpp"
#include "support/memory_file.hpp"
#include "tensor/convert.hpp"

namespace {

using namespace masque;  // NOLINT(google-build-using-namespace)

using exchange::TextSink;

void same(const mask::BitMatrix& one, const mask::BitMatrix& other) {
  test::require(one == other, "a mask that does not read back");
}

void reads_back(const mask::BitMatrix& bits) {
  if (bits.rows() == 0 || bits.columns() == 0 || bits.rows() * bits.columns() > (1 << 16)) return;
  const mask::Mask mask = mask::from_bits(bits);
  std::string text;
  const TextSink sink = [&](std::string_view part) { text += part; };
  exchange::print_mask_text(mask, sink);
  same(exchange::parse_mask_text(text, "text"), bits);
  text.clear();
  exchange::print_mask_pbm(mask, sink);
  same(exchange::parse_mask_pbm(text, "pbm"), bits);
  text.clear();
  exchange::print_mask_json(mask, "full", sink);
  same(exchange::parse_mask_json(text, "json"), bits);
}

/// Whether few bytes say how large a mask is, and it is large: up to 4 GB are allowed.
bool is_large(std::string_view input) {
  constexpr std::uint64_t kMost = 1 << 12;
  const auto json = read_json(input);
  const auto* root = std::get_if<JsonValue>(&json);
  if (root == nullptr) return false;
  const JsonValue* keys = root->find("keys");
  return keys != nullptr && keys->integer().value_or(0) > kMost;
}

bool is_large(const store::Array& array) {
  constexpr double kMost = 1 << 12;
  if (is_packed(array.dtype) || components(array.dtype) != 1) return false;
  std::vector<double> values(array.data.size() / (dtype_bits(array.dtype) / 8));
  to_double(array.dtype, array.data, values);
  return !values.empty() && values.back() > kMost;
}

void check(std::string_view input) {
  if (is_large(input)) return;
  const test::MemoryFile file(input);
  test::accepts([&] { reads_back(exchange::read_mask(file.path())); });
  store::Array array;
  if (!test::accepts([&] { array = exchange::read_matrix(file.path()); })) return;
  for (const exchange::Convention* convention : exchange::conventions()) {
    if (convention->name == "cu_seqlens" && is_large(array)) continue;
    for (const Index item : {0, 1, 2}) {
      exchange::DecodeRequest request{.path = "fuzz"};
      if (item < 2) request.item = item;
      if (item == 1) request.lengths = mask::Lengths{5, 7};
      test::accepts([&] { convention->decode(array, request); });
    }
  }
}

std::string mutate(std::string_view input, test::Choices& choices) {
  for (const test::Mutate kind : {test::mutate_json, test::mutate_safetensors, test::mutate_zip}) {
    const std::string changed = kind(input, choices);
    if (!changed.empty()) return changed;
  }
  return test::mutate_lines(input, choices);
}

}  // namespace

MASQUE_FUZZ_TARGET(check)
MASQUE_FUZZ_MUTATOR(mutate)
