// PyTorch's files before 1.6: the rules are in store/torch/torch_legacy.hpp. Changed ones become
// zip files, but in place.
#include "store/torch/torch_legacy.hpp"

namespace masque::store {

namespace {

/// No checksums.
std::vector<Patch> in_place(const PatchedFile& /*file*/) { return {}; }

const FileFormat kFormat{.name = "torch_legacy",
                         .writer = "torch",
                         .recognise = is_torch_legacy,
                         .read = read_torch_legacy,
                         .in_place = in_place};
const FormatRegistration kRegistration{kFormat};

}  // namespace

}  // namespace masque::store
