#include "store/second/name.hpp"
