// Not by its layer.
#  include "neighbour.hpp"
