// Parsed once for all tests of the fast build.
#pragma once

#include <doctest/doctest.h>

#include "../../scripts/cmake/pch.hpp"
