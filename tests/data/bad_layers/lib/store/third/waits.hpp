#include "store/first/name.hpp"
