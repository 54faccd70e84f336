// PyTorch's zip files: the rules are in store/torch_zip.
#include "store/torch_zip.hpp"
#include "store/zip_stream.hpp"

namespace masque {

namespace {

const FileFormat kFormat{"torch", "torch", is_torch_zip, read_torch_zip, check_zip_sums};
const FormatRegistration kRegistration{kFormat};

}  // namespace

}  // namespace masque
