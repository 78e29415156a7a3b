// Householder factors of a tall panel: the step that chases a panel into the band.
#pragma once

#include "algebra/multiply.hpp"

namespace mercer::algebra {

// P = (I - V T V') R for a panel of `columns` columns and `rows` rows, given transposed: `p` holds
// one column of P per row, rows `ld` apart, zero from `rows` to the next multiple of 32.
// On return p holds V' (explicit ones and zeros), `t` the upper triangular T and `r` the upper
// triangular R with min(rows, columns) rows, both columns x columns.
void panel_qr(double* p, Size columns, Size rows, Size ld, double* t, double* r);

}  // namespace mercer::algebra
