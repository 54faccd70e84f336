// The mask that a file holds.
#include <fmt/format.h>

#include "base/error.hpp"
#include "exchange/mask_file.hpp"
#include "mask/zoo.hpp"

namespace masque::exchange {

namespace {

/// Standard input can be read once only, but its lengths are requested first.
mask::BitMatrix read_once(const std::string& path, std::optional<mask::Lengths> expected = {}) {
  if (path != "-") return read_mask(path, expected);
  static const mask::BitMatrix kBits = read_mask("-");
  return kBits;
}

const mask::MaskKind kExplicit{
    "explicit",
    {{"file", mask::MaskParameterKind::kFile}},
    "cell (i, j) of the file is 1",
    "any mask: npy, npz, safetensors, PBM, TSV, # and .; FILE:NAME for one of several arrays",
    "",
    "",
    [](const mask::MaskValues& v, mask::Lengths l) {
      mask::BitMatrix bits = read_once(v.file(), l);
      if (bits.rows() != l.queries || bits.columns() != l.keys) {
        throw InputError(v.file(), fmt::format("a mask of {} × {}, expected {} × {}", bits.rows(),
                                               bits.columns(), l.queries, l.keys));
      }
      return mask::from_bits(std::move(bits));
    },
    nullptr,
    mask::Fits::kAny,
    [](const mask::MaskValues& v) -> std::optional<mask::Lengths> {
      const mask::BitMatrix bits = read_once(v.file());
      return mask::Lengths{bits.rows(), bits.columns()};
    }};
const mask::MaskRegistration kExplicitRegistration{kExplicit};

}  // namespace

}  // namespace masque::exchange
