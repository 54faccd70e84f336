// Which library computes.
#pragma once

#include <string>

namespace masque::kernel {

/// The library of matrix products that is in use at run time: "oneDNN 2.6.3".
std::string library_version();

}  // namespace masque::kernel
