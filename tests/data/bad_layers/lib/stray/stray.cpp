#include "base/good.hpp"
