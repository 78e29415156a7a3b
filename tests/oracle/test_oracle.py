"""No certificate of a hostile fit is false by more than it states; the oracle sees wrong values.

The 10,000 fits: `python -m oracle --fits 10000`, from `tests/`.
"""

import numpy as np
import pytest

from oracle.draw import Draw
from oracle.estimators import ORACLES, findings
from oracle.exact import gaussian

pytestmark = pytest.mark.numerics

FITS = 8  # of each estimator and chunk


@pytest.mark.sampled(4)
@pytest.mark.parametrize("chunk", range(4))
@pytest.mark.parametrize("name", ORACLES)
def test_no_certificate_is_false(name, chunk):
    found = [findings(name, Draw(chunk * FITS + k)) for k in range(FITS)]
    assert sum(each is not None for each in found) > FITS // 4  # not by refusing
    messages = [message for each in found if each for message in each]
    assert not messages, "\n".join(messages)


class Calm(Draw):
    """Ordinary data: the first of all options, and no harm."""

    def chance(self, probability):
        return probability > 0.5

    def one(self, options):
        return options[0]

    def kernel(self, X):
        return gaussian(1.0)


@pytest.mark.parametrize(
    ("name", "attribute", "factor"),
    [
        ("KernelRidge", "dual_coef_", 1.001),
        ("SVC", "dual_coef_", 1.1),
        ("SVR", "dual_coef_", 1.1),
        ("PCA", "eigenvalues_", 1.001),
        ("FisherDiscriminant", "ratios_", 1.001),
        ("CCA", "correlations_", 0.999),
        ("KMeans", "inertia_", 1.001),
        ("GaussianMixture", "means_", 1.1),
        ("BernoulliMixture", "weights_", 1.1),
        ("HarmonicRegressor", "values_", 1.001),
        ("LaplacianRidge", "dual_coef_", 1.001),
        ("MaximumEntropy", "probabilities_", 1.001),
        ("GaussianProcess", "log_marginal_likelihood_value_", 1.001),
    ],
)
def test_the_oracle_sees_a_wrong_value(name, attribute, factor):
    draw, check = ORACLES[name]
    fit = draw(Calm(0, sizes=(12,), columns=(2,)))
    assert fit.run(), fit.certificate
    assert not list(check(fit))
    setattr(fit.machine, attribute, factor * np.asarray(getattr(fit.machine, attribute)))
    assert list(check(fit))
