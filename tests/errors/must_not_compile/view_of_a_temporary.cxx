// SPDX-License-Identifier: MIT
// Clang warns that the view dangles: the vector is destroyed at once.
#include <vector>

#include <tensorgrad/tensorgrad.h>

std::vector<float> pixels();
void view() { const tensorgrad::HostView view = pixels(); }
