// Parsed once for all tests of the fast build.
#pragma once

#include "../../scripts/cmake/pch.hpp"

#include <doctest/doctest.h>
