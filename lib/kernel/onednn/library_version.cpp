#include "kernel/onednn/library_version.hpp"

#include "kernel/onednn/matmul_onednn.hpp"

namespace masque::kernel {

std::string library_version() { return onednn::library_version(); }

}  // namespace masque::kernel
