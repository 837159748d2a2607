// Stands for DirectML.h in the tests in C++; `-I tests/cpp` finds it.
#include "../data/DirectML_stand_in.h"
