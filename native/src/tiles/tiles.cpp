// The vector code of one instruction set. CMake compiles this file once per MERCER_VARIANT, with
// different flags, and runtime/dispatch.hpp chooses.
#include "tiles/tiles.hpp"

#include "tiles/placement.hpp"
#include "tiles/product.hpp"
#include "tiles/program.hpp"
#include "tiles/select.hpp"
#include "tiles/sparse.hpp"
#include "tiles/statistics.hpp"
#include "tiles/stripes.hpp"

#define MERCER_TEXT_(x) #x
#define MERCER_TEXT(x) MERCER_TEXT_(x)

namespace mercer {
namespace {

template <class T>
constexpr Tiles<T> kTiles = {MERCER_TEXT(MERCER_VARIANT),
                             kLanes<T>,
                             kMr,
                             kNr<T>,
                             kHasBytes<T>,
                             compare<T>,
                             compare_sparse<T>,
                             combine<T>,
                             run<T>,
                             transpose<T>,
                             place<T>,
                             stream_turned<T>,
                             finish_streaming,
                             multiply<T>,
                             multiply_both<T>,
                             collect<T>,
                             multiply_stripes<T>,
                             select<T>};

}  // namespace

template <>
const Tiles<float>& MERCER_VARIANT::table() {
  return kTiles<float>;
}
template <>
const Tiles<double>& MERCER_VARIANT::table() {
  return kTiles<double>;
}

}  // namespace mercer
