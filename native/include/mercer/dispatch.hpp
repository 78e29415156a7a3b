// Choosing the vector code; host side of tiles.hpp.
#pragma once

#include <string>
#include <vector>

#include "mercer/tiles.hpp"

namespace mercer {

// The table for this machine, or the one that MERCER_ISA names; throws std::runtime_error.
template <class T>
const Tiles<T>& tiles();
template <>
const Tiles<float>& tiles<float>();
template <>
const Tiles<double>& tiles<double>();

// Names of the variants that run here, fastest first.
std::vector<std::string> instruction_sets();

}  // namespace mercer
