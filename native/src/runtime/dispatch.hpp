// Choosing the vector code; host side of tiles.hpp.
#pragma once

#include <string>
#include <vector>

#include "tiles/tiles.hpp"

namespace mercer {

// The table for this machine, or the one that MERCER_ISA names; throws std::runtime_error.
template <class T>
const Tiles<T>& tiles();
template <>
const Tiles<float>& tiles<float>();
template <>
const Tiles<double>& tiles<double>();

// Whether kByteDot runs: the variant knows it, the machine has AVX-512 VNNI, and the environment
// does not say MERCER_VNNI=0.
bool byte_products(const Tiles<float>& tiles);

// Names of the variants that run here, fastest first.
std::vector<std::string> instruction_sets();

}  // namespace mercer
