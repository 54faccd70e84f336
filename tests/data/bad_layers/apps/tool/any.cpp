#include "store/store.hpp"
#include "commands.hpp"
int x;
