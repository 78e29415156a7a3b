import numpy as np
import pytest
import sklearn.model_selection
from matplotlib.figure import Figure
from sklearn.datasets import make_moons

from mercer import SVC, KernelRidge, LogisticRegression
from mercer.kernels import Gaussian
from mercer.plots import BiasVarianceDisplay, BoundsDisplay, LearningCurveDisplay
from mercer.selection import bias_variance
from mercer.theory import double_sampling_error, machine_bound

X, Y = make_moons(120, noise=0.25, random_state=0)


def axes():
    return Figure(layout="constrained").subplots()


def test_the_curve_is_the_mean_over_folds():
    machine = SVC(Gaussian(0.6))
    shown = LearningCurveDisplay.from_estimator(machine, X, Y, sizes=[20, 80], cv=3, ax=axes())
    for line, scores in zip(
        shown.lines_, (shown.curve.scores, shown.curve.train_scores), strict=True
    ):
        assert np.allclose(line.get_ydata(), scores.mean(axis=1))
        assert line.get_xdata().tolist() == [20, 80]
    folds = sklearn.model_selection.StratifiedKFold(3, shuffle=True, random_state=0)
    whole = sklearn.model_selection.cross_val_score(machine, X, Y, cv=folds)
    assert np.isclose(shown.lines_[0].get_ydata()[-1], whole.mean())  # 80 rows are all of a fold
    assert shown.score_name == "accuracy"
    assert [t.get_text() for t in shown.ax_.get_xticklabels()] == ["20", "80"]


def test_parts_of_the_error_are_those_of_bias_variance():
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, size=(80, 1))
    y = np.sin(2 * x[:, 0]) + 0.3 * rng.normal(size=80)
    machine = KernelRidge(0.1, kernel=Gaussian(1.0))
    split = (x[:40], y[:40], x[40:], y[40:])
    shown = BiasVarianceDisplay.from_estimator(
        machine, *split, param_name="kernel__scale", param_range=[0.2, 5.0], resamples=6, ax=axes()
    )
    for place, scale in enumerate((0.2, 5.0)):
        part = bias_variance(KernelRidge(0.1, kernel=Gaussian(scale)), *split, resamples=6)
        drawn = [line.get_ydata()[place] for line in shown.lines_]
        assert np.allclose(drawn, [part.error, part.bias, part.variance])
    assert shown.ax_.get_xscale() == "log" and shown.error_name == "squared error"
    with pytest.raises(ValueError, match="KernelRidge has no parameter 'kernel__gamma'"):
        BiasVarianceDisplay.from_estimator(
            machine, *split, param_name="kernel__gamma", param_range=[1.0]
        )
    with pytest.raises(ValueError, match="must be a list of numbers"):
        BiasVarianceDisplay.from_estimator(machine, *split, param_name="penalty", param_range=[])


def test_labels_have_a_variance_that_helps():
    shown = BiasVarianceDisplay.from_estimator(
        SVC(Gaussian(0.3)), X[:40], Y[:40], X[40:], Y[40:],
        param_name="C", param_range=[0.1, 10.0], resamples=6, ax=axes(),
    )  # fmt: skip
    names = [line.get_label() for line in shown.lines_]
    assert names[-1] == "variance that helps" and shown.error_name == "misclassification rate"


def test_bounds_are_those_of_the_theory():
    sizes = [10, 100, 1000]
    shown = BoundsDisplay.from_functions(
        {"VC": lambda n: double_sampling_error(3, n, delta=0.05)},
        sizes,
        errors={"seen": [0.3, 0.1, 0.05]},
        ax=axes(),
    )
    values = [double_sampling_error(3, n, delta=0.05).value for n in sizes]
    drawn = shown.lines_["VC"].get_ydata()
    assert np.isnan(drawn[0]) and values[0] == 1.0  # vacuous: dotted
    assert np.allclose(drawn[1:], values[1:])
    assert shown.lines_["seen"].get_ydata().tolist() == [0.3, 0.1, 0.05]
    with pytest.raises(ValueError, match="2 errors in 'seen', but 3 sizes"):
        BoundsDisplay.from_functions({}, sizes, errors={"seen": [0.1, 0.2]})
    with pytest.raises(ValueError, match="sizes must be integers"):
        BoundsDisplay.from_functions({}, [0.5])


def test_bounds_of_a_machine_by_the_rows_it_saw():
    machine = SVC(Gaussian(1.0), C=0.1)
    shown = BoundsDisplay.from_estimator(
        machine, X[:80], Y[:80], X[80:], Y[80:], sizes=[40, 80], ax=axes()
    )
    for place, n in enumerate((40, 80)):
        fitted = SVC(Gaussian(1.0), C=0.1).fit(X[:n], Y[:n])
        bound = machine_bound(fitted, X[:n], Y[:n]).value
        assert shown.bounds["margin bound"][place] == bound
        error = np.mean(fitted.predict(X[80:]) != Y[80:])
        assert shown.errors["error on test rows"][place] == error
    with pytest.raises(ValueError, match="sizes go to 500, but X has 80 rows"):
        BoundsDisplay.from_estimator(machine, X[:80], Y[:80], X[80:], Y[80:], sizes=[500])
    with pytest.raises(TypeError, match="needs an SVC, got LogisticRegression"):
        BoundsDisplay.from_estimator(LogisticRegression(), X, Y, X, Y)
