// PyTorch's files before 1.6: the rules are in store/torch_legacy. Changed ones become zip files.
#include "store/torch_legacy.hpp"

namespace masque {

namespace {

const FileFormat kFormat{"torch_legacy", "torch", is_torch_legacy, read_torch_legacy};
const FormatRegistration kRegistration{kFormat};

}  // namespace

}  // namespace masque
