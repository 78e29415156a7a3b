// The micro tile mr x nr: accumulators fill three quarters of the registers, the rest hold one row
// of B and a broadcast element of A.
#pragma once

#include "runtime/vector.hpp"

namespace mercer {
namespace {

constexpr int kColumnVectors = 3;
constexpr int kMr = kRegisters / 4;
template <class T>
constexpr int kNr = kColumnVectors * kLanes<T>;

}  // namespace
}  // namespace mercer
