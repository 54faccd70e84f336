#include "tensor/dtype.hpp"
