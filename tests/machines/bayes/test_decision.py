"""Joint tables and decisions: the worked numbers of the texts, brute force, SciPy."""

import itertools
import math
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import BayesDecision, JointTable, ParameterError

# rows h1 (over-weight), h2; columns x1 ... x5: the hits of Fig. 1.1 of the lecture notes
HITS = [[2, 5, 4, 2, 1], [0, 0, 3, 3, 2]]


@parametrize_with_checks(
    [BayesDecision(), BayesDecision("map"), BayesDecision("ml", alpha=1.0)]
)  # no list of expected failures
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# --- the worked numbers ------------------------------------------------------------------------


def test_body_mass_table():
    table = JointTable(HITS, names=("h", "x"))
    assert table.total == 22
    np.testing.assert_allclose(table.marginal("h").probabilities, [14 / 22, 8 / 22])
    assert table.marginal("x").probabilities.argmax() == 2
    assert table.marginal("x").probabilities[2] == pytest.approx(7 / 22)
    assert table.conditional("h", given="x")[2, 1] == pytest.approx(3 / 7)
    assert table.conditional("x", given="h")[1, 2] == pytest.approx(3 / 8)
    machine = BayesDecision.from_table(np.transpose(HITS), classes=["over", "normal"])
    # the posterior of h1 is the larger one up to x3, and the smaller one from x4 on
    found = machine.predict([[0], [1], [2], [3], [4]]).tolist()
    assert found == ["over", "over", "over", "normal", "normal"]


def test_dice_or_roulette():
    likelihood = [[1 / 36, 1 / 38], [35 / 36, 37 / 38]]
    machine = BayesDecision.from_likelihood(
        likelihood, [0.5, 0.5], classes=["dice", "roulette"], values=[12, "other"]
    )
    assert machine.likelihood_[0].tolist() == pytest.approx([1 / 36, 1 / 38])
    assert machine.predict([[12]]).tolist() == ["dice"]
    assert machine.predict_proba([[12]])[0, 0] == pytest.approx(38 / 74)


def kit(**params):
    return BayesDecision.from_likelihood(
        [[0.98, 0.03], [0.02, 0.97]],
        [0.01, 0.99],
        classes=["cancer", "healthy"],
        values=["+", "-"],
        **params,
    )


def test_cancer_kit():
    # the text has 26.6 %; 0.0098 / 0.0395 is 24.8 %
    machine = kit()
    assert machine.predict_proba([["+"]])[0, 0] == pytest.approx(0.0098 / 0.0395, abs=1e-15)
    assert machine.predict_proba([["+"]])[0, 0] == pytest.approx(0.248, abs=5e-4)
    assert machine.evidence_[0] == pytest.approx(0.0395)
    assert machine.predict([["+"]]).tolist() == ["healthy"]
    assert kit(rule="ml").predict([["+"]]).tolist() == ["cancer"]  # what ignores the base rate
    assert kit(loss=[[0, 1], [20, 0]]).predict([["+"]]).tolist() == ["cancer"]
    assert kit(rule="map", loss=[[0, 1], [20, 0]]).predict([["+"]]).tolist() == ["healthy"]
    assert kit(reject=0.2).predict([["+"], ["-"]]).tolist() == ["reject", "healthy"]
    assert kit(reject=0.3).predict([["+"]]).tolist() == ["healthy"]


def test_coin():
    coin = BayesDecision.from_likelihood(
        [[0.5, 0.6], [0.5, 0.4]], [0.75, 0.25], classes=["fair", "forged"], values=["H", "T"]
    )
    found = coin.update(["H", "H"])
    assert found[0, 0] == pytest.approx(0.714, abs=5e-4)
    # the text rounds on the way: 0.675; without rounding it is 0.6757
    assert found[1, 0] == pytest.approx(0.675, abs=1e-3)
    assert found[1, 0] == pytest.approx(0.75 * 0.25 / (0.75 * 0.25 + 0.25 * 0.36))
    # updates one by one are one update
    both = coin.update([["T"]], belief=coin.update([["H"]])[-1])
    np.testing.assert_allclose(both[-1], coin.update(["T", "H"])[-1])


def test_bias_of_a_coin_by_likelihood():
    tosses = JointTable([7, 3])
    assert tosses.probabilities[0] == 0.7


# --- tables ------------------------------------------------------------------------------------


def test_conditional_on_values():
    counts = np.arange(1.0, 13).reshape(2, 3, 2)
    table = JointTable(counts, names=("h", "x", "z"), values=[("a", "b"), (1, 2, 3), ("u", "v")])
    at_three = counts[:, 2].sum(axis=1)
    np.testing.assert_allclose(table.conditional("h", {"x": 3}), at_three / at_three.sum())
    both = counts[:, 0, 1]
    np.testing.assert_allclose(table.conditional("h", {"z": "v", 1: 1}), both / both.sum())
    np.testing.assert_allclose(table.conditional("h", {}), table.marginal("h").probabilities)
    with pytest.raises(ValueError, match="JointTable: 'x' has no value 7; its values are 1, 2, 3"):
        table.conditional("h", {"x": 7})
    with pytest.raises(ValueError, match="no variable 'y'"):
        table.conditional("h", {"y": 3})


def test_conditional_independence():
    # Joe and Mo are late together only because of the strike
    strike, joe, mo = 0.2, [0.1, 0.8], [0.2, 0.7]
    table = np.zeros((2, 2, 2))
    for s, a, b in itertools.product(range(2), repeat=3):
        p = strike if s else 1 - strike
        table[s, a, b] = p * (joe[s] if a else 1 - joe[s]) * (mo[s] if b else 1 - mo[s])
    late = JointTable(table, names=("strike", "joe", "mo"))
    assert late.information("joe", "mo") > 0.01
    assert late.information("joe", "mo", given="strike") == pytest.approx(0, abs=1e-15)
    given_both = late.conditional("joe", given=("strike", "mo"))
    np.testing.assert_allclose(given_both[:, 0], given_both[:, 1])
    counts = JointTable(np.rint(table * 10_000), names=("strike", "joe", "mo"))
    assert counts.independence("joe", "mo").p_value < 1e-10
    assert counts.independence("joe", "mo", given="strike").p_value > 0.5
    assert counts.independence("joe", "mo", given="strike").dof == 2
    assert counts.marginal("mo", "strike").counts.shape == (2, 2)
    np.testing.assert_allclose(counts.marginal("mo", "strike").counts, counts.counts.sum(1).T)


def test_independence_equals_scipy():
    table = JointTable(HITS)
    for method, kind in (("chi2", "pearson"), ("g", "log-likelihood")):
        theirs = stats.chi2_contingency(HITS, correction=False, lambda_=kind)
        ours = table.independence(0, 1, method=method)
        assert (ours.statistic, ours.dof) == (pytest.approx(theirs.statistic), theirs.dof)
        assert ours.p_value == pytest.approx(theirs.pvalue)
    # G is twice the total times the information
    g = table.independence(0, 1, method="g")
    assert g.statistic == pytest.approx(2 * 22 * g.information)
    tea = JointTable([[3, 1], [1, 3]])
    exact = tea.independence(0, 1)
    assert (exact.method, exact.p_value) == ("exact", pytest.approx(34 / 70))
    large = table.independence(0, 1)
    assert large.method == "exact"
    assert abs(large.p_value - brute_force_p(np.array(HITS))) < 0.02
    assert JointTable([[30, 20], [10, 40]]).independence(0, 1).method == "g"
    assert JointTable([[30, 20]]).independence(0, 1).p_value == 1.0


def brute_force_p(counts):
    """Sum the probabilities of all tables with these margins that are as far from independence."""
    rows, columns = counts.sum(axis=1), counts.sum(axis=0)

    def distance(first):
        both = np.array([first, columns - first])
        expected = np.outer(rows, columns) / counts.sum()
        return ((both - expected) ** 2 / expected).sum()

    limit = distance(counts[0]) - 1e-9
    p = 0.0
    for first in itertools.product(*(range(c + 1) for c in columns)):
        if sum(first) == rows[0] and distance(np.array(first)) >= limit:
            ways = math.prod(math.comb(c, x) for c, x in zip(columns, first, strict=True))
            p += ways / math.comb(int(counts.sum()), int(rows[0]))
    return p


def test_tables_from_data():
    x, h = ["a", "b", "a", "c"], [1, 0, 1, 1]
    table = JointTable.from_data(x, h, names=("x", "h"), sample_weight=[1, 2, 3, 1])
    assert table.values == (("a", "b", "c"), (0, 1))
    np.testing.assert_array_equal(table.counts, [[0, 4], [2, 0], [0, 1]])
    assert repr(table) == "<JointTable of x, h: 3 x 2, total 7>"
    absent = JointTable.from_data(x, h, sample_weight=[1, 2, 3, 0])
    assert absent.values == (("a", "b"), (0, 1))
    np.testing.assert_allclose(table.conditional(1, given=np.int64(0)).sum(axis=1), 1.0)


def test_exact_test_given_a_third_variable():
    tea = np.array([[3, 1], [1, 3]])
    both = JointTable(np.stack([tea, tea[::-1]]), names=("cup", "a", "b"))
    found = both.independence("a", "b", given="cup")
    assert (found.method, found.dof) == ("exact", 0)
    # all pairs of tables with these margins: the upper left cells i and j, each 0 ... 4
    ways = {i: math.comb(4, i) ** 2 / math.comb(8, 4) for i in range(5)}
    far = {i: 2 * (i - 2) ** 2 for i in range(5)}
    p = sum(ways[i] * ways[j] for i in ways for j in ways if far[i] + far[j] >= far[3] + far[1])
    assert found.statistic == pytest.approx(4.0)
    assert abs(found.p_value - p) < 0.02
    same = JointTable(tea[None], names=("cup", "a", "b")).independence("a", "b", given="cup")
    assert same.p_value == pytest.approx(34 / 70)  # one slice is no condition


def test_exact_test_of_a_wide_table_takes_little_memory():
    table = JointTable(np.random.default_rng(0).integers(0, 3, (60, 60)))
    tracemalloc.start()
    try:
        assert table.independence(0, 1).method == "exact"
        assert tracemalloc.get_traced_memory()[1] < 60e6  # all 9999 tables would take 288 MB
    finally:
        tracemalloc.stop()


def test_bad_tables():
    for wrong in ([[-1, 2]], [[0, 0]], [[np.nan, 1]], 3.0):
        with pytest.raises(ValueError, match="nonnegative"):
            JointTable(wrong)
    with pytest.raises(ValueError, match="needs counts"):
        JointTable([[0.5, 0.2], [0.2, 0.1]]).independence(0, 1)
    with pytest.raises(ValueError, match="no variable 'z'"):
        JointTable(HITS).marginal("z")
    with pytest.raises(ValueError, match="names"):
        JointTable(HITS, names=("a", "a"))
    with pytest.raises(ValueError, match="finite sum"):
        JointTable([[1e308, 1e308]])
    with pytest.raises(ValueError, match="different strings"):
        JointTable(HITS, names=(1, 2))
    for gap in (None, np.nan, pd.NA):
        with pytest.raises(ValueError, match=r"column 1 are missing, .* number 2"):
            JointTable.from_data([1, 2, 3], np.array([1.0, 2.0, gap], dtype=object))
    with pytest.raises(ValueError, match="column 0 cannot be sorted"):
        JointTable.from_data(np.array([1, "a"], dtype=object), [1, 2])
    for wrong in ([1], [1, -1], [np.nan, 1], [0, 0]):
        with pytest.raises(ValueError, match=r"JointTable: .*sample_weight"):
            JointTable.from_data([1, 2], [1, 2], sample_weight=wrong)
    with pytest.raises(ValueError, match="method="):
        JointTable(HITS).independence(0, 1, method="t")


# --- fitted to data ------------------------------------------------------------------------------


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.choice(["u", "v"], n), "b": rng.integers(0, 3, n)})
    odds = 0.2 + 0.6 * ((X["a"] == "u") ^ (X["b"] == 1))  # no attribute tells anything alone
    return X, np.where(rng.random(n) < odds, "yes", "no")


def test_fit_counts():
    X, y = rows()
    machine = BayesDecision().fit(X, y)
    for (a, b), posterior in zip(machine.values_, machine.posterior_, strict=True):
        mine = (X["a"] == a) & (X["b"] == b)
        assert posterior[1] == pytest.approx((y[mine] == "yes").mean())
    assert machine.score(X, y) > 0.7
    assert machine.certificate_.ok
    assert machine.joint_.probabilities.sum() == pytest.approx(1)
    np.testing.assert_allclose(
        machine.predict_proba(pd.DataFrame({"a": ["w"], "b": [9]}))[0], machine.prior_
    )


@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.booleans(), st.integers(0, 1), st.integers(0, 3)),
        min_size=4,
        max_size=25,
    )
)
def test_weights_and_streams(case):
    case = [(0, True, 0, 1), (1, False, 1, 2), *case]
    X = np.array([row[:2] for row in case], dtype=object)
    y, weights = np.array([row[2] for row in case]), np.array([row[3] for row in case])
    index = np.repeat(np.arange(len(X)), weights)
    base = BayesDecision(alpha=0.5).fit(X[index], y[index]).predict_proba(X)
    weighted = BayesDecision(alpha=0.5).fit(X, y, sample_weight=weights).predict_proba(X)
    np.testing.assert_allclose(weighted, base, atol=1e-12)
    stream = BayesDecision(alpha=0.5)
    for i in index:
        stream.partial_fit(X[i : i + 1], y[i : i + 1], classes=[0, 1])
    np.testing.assert_allclose(stream.predict_proba(X), base, atol=1e-12)


def test_least_risk_by_brute_force():
    rng = np.random.default_rng(3)
    for _ in range(20):
        counts, loss = rng.integers(0, 6, (4, 3)) + np.eye(4, 3), rng.random((3, 3)) * 5
        machine = BayesDecision.from_table(counts, loss=loss)
        for x in range(4):
            posterior = counts[x] / counts[x].sum() if counts[x].sum() else machine.prior_
            risks = [sum(loss[i, j] * posterior[j] for j in range(3)) for i in range(3)]
            assert machine.predict([[x]])[0] == int(np.argmin(risks))
            np.testing.assert_allclose(machine.risk([[x]])[0], risks)
            shy = BayesDecision.from_table(counts, loss=loss, reject=1.0, reject_label=-1)
            assert shy.predict([[x]])[0] == (-1 if min(risks) > 1.0 else int(np.argmin(risks)))


def test_decisions_agree_with_probabilities():
    rng = np.random.default_rng(0)
    for k in (2, 3, 4, 6):
        for _ in range(60):  # small counts make ties, which sums of risks would break by rounding
            counts = rng.integers(0, 6, (4, k)) + np.eye(4, k)
            for rule in ("risk", "map", "ml"):
                machine = BayesDecision.from_table(counts, rule=rule)
                found = machine.predict_proba([[0], [1], [2], [3]])
                wanted = found.argmax(axis=1)
                assert machine.predict([[0], [1], [2], [3]]).tolist() == wanted.tolist()


def test_a_class_of_no_probability_keeps_its_likelihoods():
    machine = BayesDecision.from_likelihood([[0.9, 0.2], [0.1, 0.8]], [0, 1], rule="ml")
    np.testing.assert_allclose(machine.predict_proba([[0]]), [[0.9 / 1.1, 0.2 / 1.1]])
    np.testing.assert_allclose(machine.update([0], belief=[1, 1])[0], [0.9 / 1.1, 0.2 / 1.1])
    np.testing.assert_allclose(machine.likelihood_, [[0.9, 0.2], [0.1, 0.8]])
    assert machine.prior_.tolist() == [0, 1]
    assert machine.certificate_.ok


def test_parameters_after_the_fit():
    X, labels = [["a"], ["b"], ["a"], ["a"]], [0, 0, 1, 1]
    machine = BayesDecision().fit(X, labels)
    before = machine.predict_proba([["a"], ["never"]])
    machine.set_params(alpha=1.0)  # belongs to the fit: half a change would be none
    np.testing.assert_array_equal(machine.predict_proba([["a"], ["never"]]), before)
    for wrong in ({"rule": "guess"}, {"reject": "x"}, {"loss": np.eye(3)}):
        with pytest.raises(ParameterError, match=f"BayesDecision: {next(iter(wrong))}="):
            BayesDecision().fit(X, labels).set_params(**wrong).predict(X)


def test_observations_keep_their_types():
    assert BayesDecision().fit([[True], [False]], [0, 1]).values_ == [(True,), (False,)]
    assert isinstance(BayesDecision().fit([[True], [False]], [0, 1]).values_[0][0], bool)
    listed = BayesDecision.from_table([[1, 2], [3, 4]], values=[["a", 1], ["b", 2]])
    assert listed.values_ == [("a", 1), ("b", 2)]


def test_refusals():
    with pytest.raises(ValueError, match="one length"):
        BayesDecision.from_table(np.ones((2, 2)), values=[("a",), ("b", "c")])
    with pytest.raises(TypeError, match="BayesDecision: values"):
        BayesDecision.from_table(np.ones((2, 2)), values=[{}, {}])
    with pytest.raises(ValueError, match="mixes strings"):
        BayesDecision.from_table(np.ones((2, 2)), classes=["a", 1])
    with pytest.raises(ValueError, match="sample_weight adds"):
        BayesDecision().fit([["a"], ["b"]], [0, 1], sample_weight=[1e308, 1e308])
    with pytest.raises(ValueError, match="missing"):
        BayesDecision().fit([["a"], [None]], [0, 1])
    with pytest.raises(ValueError, match="add up to one"):
        BayesDecision.from_likelihood([[0.5, 0.6], [0.5, 0.6]], [0.5, 0.5])
    with pytest.raises(ValueError, match="different labels"):
        BayesDecision.from_table(np.ones((2, 2)), classes=["a", "a"])
    with pytest.raises(ValueError, match="two classes"):
        BayesDecision.from_table(np.ones((2, 1)))
    with pytest.raises(ValueError, match="values must be 2"):
        BayesDecision.from_table(np.ones((2, 2)), values=["a", "a"])
    sure = BayesDecision.from_table([[1, 0], [0, 1]])
    with pytest.raises(ValueError, match="observation 1 has probability zero"):
        sure.update([0, 1])
    with pytest.raises(ValueError, match="belief"):
        sure.update([0], belief=[1.0])
    with pytest.raises(ValueError, match="belief"):
        sure.update([0], belief=[np.inf, 1.0])
    for wrong in ({"rule": "guess"}, {"reject": -1.0}, {"alpha": -1.0}, {"loss": [[1.0]]}):
        with pytest.raises(ParameterError, match=f"BayesDecision: {next(iter(wrong))}="):
            BayesDecision(**wrong).fit(*rows())


@pytest.mark.filterwarnings("error")
def test_counts_to_add_may_be_numbers_of_any_width():
    X, y = np.eye(4), [0, 0, 1, 1]
    for alpha in (np.float32(0.5), np.float16(0.5), np.int8(1)):
        BayesDecision(alpha=alpha).fit(X, y)
