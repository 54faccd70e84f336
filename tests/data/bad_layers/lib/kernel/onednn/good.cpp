#include <oneapi/dnnl/dnnl.hpp>
