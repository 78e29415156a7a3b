"""A short fuzz with fixed seeds, and the fuzzer itself: it repeats, and it sees what is wrong."""

import numpy as np
import pytest
from fuzz.case import HEAD, Case, draw_case
from fuzz.judge import findings, judged
from fuzz.machines import MACHINES
from fuzz.trial import Trial

CASES = 40  # of each chunk: a second or two
PLAIN = ["rng = np.random.default_rng(0)", "n, d = 20, 2", "X = rng.standard_normal((n, d))"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("chunk", range(6))
def test_nothing_is_found(chunk):
    found = [str(f) for i in range(CASES) for f in judged(20, CASES * chunk + i)[1]]
    assert not found, "\n".join(found)


def test_a_case_is_drawn_from_its_seed_alone():
    assert draw_case(3, 7).script() == draw_case(3, 7).script()
    assert draw_case(3, 7).script() != draw_case(3, 8).script()


def test_every_machine_is_drawn_and_every_script_is_python():
    cases = [draw_case(0, i) for i in range(1000)]
    assert {case.name for case in cases} == set(MACHINES)
    for case in cases:
        compile(case.script(), case.name, "exec")


def trial_of(name, make, target):
    lines = [*PLAIN, target, "X_new = X[:4]"]
    fit = "machine.fit(X, y)" if target else "machine.fit(X)"
    case = Case((0, 0), name, lines, [make], [fit], True, True, True, {})
    assert HEAD[0] in case.script()
    return Trial(case)


def rules(trial):
    return {finding.rule for finding in findings(trial)}


LABELS, TARGETS = "y = (X[:, 0] > 0).astype(int)", "y = X[:, 0] + 0.1 * rng.standard_normal(n)"


@pytest.mark.parametrize(
    ("name", "make", "target", "attribute", "rule"),
    [
        ("SVC", "machine = mercer.SVC(Gaussian(1.0))", LABELS, "dual_coef_", "svc"),
        ("SVR", "machine = mercer.SVR(Gaussian(1.0))", TARGETS, "dual_coef_", "svr"),
        ("OneClassSVM", "machine = mercer.OneClassSVM()", "", "dual_coef_", "one_class"),
        ("EnclosingBall", "machine = mercer.EnclosingBall()", "", "dual_coef_", "ball"),
        (
            "KernelRidge",
            "machine = mercer.KernelRidge(kernel=Gaussian(1.0))",
            TARGETS,
            "dual_coef_",
            "ridge",
        ),
        ("PCA", "machine = mercer.PCA(2, kernel=Gaussian(1.0))", "", "eigenvalues_", "pca"),
        (
            "LogisticRegression",
            "machine = mercer.LogisticRegression(Gaussian(1.0))",
            LABELS,
            "dual_coef_",
            "logistic",
        ),
    ],
)
def test_a_certified_answer_that_is_wrong_is_seen(name, make, target, attribute, rule):
    trial = trial_of(name, make, target)
    assert trial.certified
    assert not rules(trial)
    setattr(trial.machine, attribute, 1.1 * np.asarray(getattr(trial.machine, attribute)))
    assert rule in rules(trial)


def test_a_raw_exception_is_seen():
    trial = trial_of("SVC", "machine = mercer.SVC(lambda A, B: 1 / 0)", LABELS)
    assert rules(trial) == {"errors_are_sentences"}


def test_a_refusal_in_words_is_none():
    trial = trial_of("SVC", "machine = mercer.SVC(C=-1.0)", LABELS)
    assert trial.error is not None
    assert not rules(trial)
