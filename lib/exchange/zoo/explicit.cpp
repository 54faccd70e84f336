// The mask that a file holds.
#include <fmt/format.h>

#include "base/error.hpp"
#include "exchange/mask_file.hpp"
#include "mask/zoo.hpp"

namespace masque {

namespace {

/// Standard input can be read once only, but is asked for its lengths first.
BitMatrix read_once(const std::string& path) {
  if (path != "-") return read_mask(path);
  static const BitMatrix kBits = read_mask("-");
  return kBits;
}

const MaskKind kExplicit{
    "explicit",
    {{"file", ParameterKind::kFile}},
    "cell (i, j) of the file is 1",
    "any mask: npy, npz, safetensors, PBM, TSV, # and .; FILE:NAME for one of several arrays",
    "",
    "",
    [](const MaskValues& v, Lengths l) {
      BitMatrix bits = read_once(v.file());
      if (bits.rows() != l.queries || bits.columns() != l.keys) {
        throw InputError(v.file(), fmt::format("a mask of {} × {}, expected {} × {}", bits.rows(),
                                               bits.columns(), l.queries, l.keys));
      }
      return from_bits(std::move(bits));
    },
    nullptr,
    Fits::kAny,
    [](const MaskValues& v) -> std::optional<Lengths> {
      const BitMatrix bits = read_once(v.file());
      return Lengths{bits.rows(), bits.columns()};
    }};
const MaskRegistration kExplicitRegistration{kExplicit};

}  // namespace

}  // namespace masque
