#include "store/first/other.hpp"
