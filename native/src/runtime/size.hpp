// How rows, columns and entries are counted.
#pragma once

#include <cstdint>

namespace mercer {

using Size = std::int64_t;

constexpr Size round_up(Size value, Size unit) { return (value + unit - 1) / unit * unit; }

}  // namespace mercer
