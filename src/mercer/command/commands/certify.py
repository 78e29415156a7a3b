"""`mercer certify`: verify a saved model against its training data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mercer.command.models import MODEL, is_libsvm_model, training_rows, training_table
from mercer.command.results import certificate_row, certificate_values, refuse_uncertified
from mercer.command.tables import DATA, TARGET, column_of, read_arguments, read_table, reading
from mercer.command.terminal import aligned
from mercer.command.work import CommandSession, Work, python

if TYPE_CHECKING:
    from mercer.data import Table


@click.command(
    cls=Work,
    examples=[
        "certify income.mercer people.csv",
        "certify heart.model heart_scale --cost 1",
    ],
    help="Verify a saved model against its training data.\n\nThe certificate is computed again "
    "from the data and the model. MODEL is a Mercer or LIBSVM (svm-train) model. LIBSVM files do "
    "not contain the options -c, -n and -p: pass them as --cost, --nu and --epsilon. The exit "
    "code is 3 if the model is not certified.",
)
@MODEL
@DATA
@click.option(
    "--target", "-t", metavar="COLUMN", help="Target column, if the model does not name it."
)
@click.option("--cost", type=float, help="Option -c of a LIBSVM model.")
@click.option("--nu", type=float, help="Option -n of a LIBSVM model.")
@click.option("--epsilon", type=float, help="Option -p of a LIBSVM model.")
@click.option("--tol", type=float, help="Tolerance of the certificate.")
@reading
@python
@click.pass_obj
def certify(session: CommandSession, /, model: str, data: str, **options: Any) -> None:
    """Print the certificate."""
    if options["python"]:
        session.program(_program(model, data, options))
        return
    libsvm = is_libsvm_model(model)
    _refuse(options, libsvm)
    verify = _of_libsvm if libsvm else _of_mercer
    certificate, notes = verify(model, data, options)
    rows = [certificate_row(certificate), *(("", note) for note in notes)]
    values = {"model": model, **certificate_values(certificate), "notes": notes}
    session.result(values, aligned(rows))
    refuse_uncertified(certificate)


def _refuse(options: dict[str, Any], libsvm: bool) -> None:
    """Raise for options that would have no effect."""
    given = [name for name in ("cost", "nu", "epsilon") if options[name] is not None]
    if given and not libsvm:
        raise click.UsageError(f"--{given[0]} is for LIBSVM models; a Mercer model contains it")


def _of_libsvm(path: str, data: str, options: dict[str, Any]) -> tuple[Any, list[str]]:
    from mercer.files.libsvm import certify_libsvm_model, read_libsvm_model  # noqa: PLC0415

    table = read_table(data, options["drop"], **_reader(options, "libsvm"))
    X, y = _numbers(table, options["target"])
    model = read_libsvm_model(path, n_features=None if X.shape[1] == 0 else X.shape[1])
    more = {} if options["tol"] is None else {"tol": options["tol"]}
    found = certify_libsvm_model(
        model, X, y, C=options["cost"], nu=options["nu"], epsilon=options["epsilon"], **more
    )
    return found.certificate, list(found.assumptions)


def _of_mercer(path: str, data: str, options: dict[str, Any]) -> tuple[Any, list[str]]:
    from mercer.files import load, verify  # noqa: PLC0415  help needs none of it

    model = load(path)
    _refuse_columns(model, options)
    more = {} if options["tol"] is None else {"tol": options["tol"]}
    if hasattr(model, "target"):
        rows, y, notes = training_rows(model, data, **_reader(options, ""))
        return verify(model.pipeline, rows, y, **more), notes
    if hasattr(model, "schema"):  # groups, coordinates or topics of a table
        table, notes = training_table(model, data, **_reader(options, ""))
        if hasattr(model, "topics"):  # fitted to a list of texts, not to a table
            texts = [text or "" for text in table[table.columns[0]].tolist()]
            return verify(model.pipeline, texts, **more), notes
        return verify(model.pipeline, table, **more), notes
    table = read_table(data, options["drop"], **_reader(options, ""))
    X, y = _numbers(table, options["target"])
    return verify(model, X, y, **more), []


def _refuse_columns(model: Any, options: dict[str, Any]) -> None:
    """Raise for column options if the model contains its columns."""
    if not hasattr(model, "schema"):
        return
    if options["drop"]:
        raise click.UsageError(
            "--drop is for models without column names; this model contains its columns and "
            "ignores others"
        )
    target = getattr(model, "target", None)
    if options["target"] not in (None, target):
        raise click.UsageError(
            f"--target {options['target']!r}: the target of the model is {target!r}"
        )


def _reader(options: dict[str, Any], format: str) -> dict[str, Any]:
    found = read_arguments(options)
    return {"format": format, **found} if format else found


def _numbers(table: Table, target: str | None) -> tuple[Any, Any]:
    """Return rows and targets of a numeric table. LIBSVM data name their target column."""
    if target is None:
        target = TARGET if TARGET in table.columns else None
    else:
        column_of(table.columns, target, "--target")
    if target is None:
        return table.matrix(), None
    return table.drop(target).matrix(), table[target]


def _program(model: str, data: str, options: dict[str, Any]) -> list[str]:
    target = options["target"]
    if is_libsvm_model(model):
        given = "".join(
            f", {name}={options[key]!r}"
            for name, key in (("C", "cost"), ("nu", "nu"), ("epsilon", "epsilon"), ("tol", "tol"))
            if options[key] is not None
        )
        return [
            "from mercer.data import read",
            "from mercer.files.libsvm import certify_libsvm_model, read_libsvm_model",
            "",
            f"table = read({data!r}, format='libsvm')",
            f"X, y = table.drop({target or TARGET!r}).matrix(), table[{target or TARGET!r}]",
            f"print(certify_libsvm_model(read_libsvm_model({model!r}), X, y{given}))",
        ]
    from mercer.files import load  # noqa: PLC0415  help needs none of it

    found = load(model)
    _refuse_columns(found, options)
    reader = "".join(f", {name}={value!r}" for name, value in _reader(options, "").items())
    tol = "" if options["tol"] is None else f", tol={options['tol']!r}"
    begin = ["import mercer", "from mercer.files import verify"]
    loaded = f"model = mercer.load({model!r})"
    if hasattr(found, "target"):
        begin.append("from mercer.command.models import training_rows")
        return [*begin, "", loaded, f"rows, y, _ = training_rows(model, {data!r}{reader})",
                f"print(verify(model.pipeline, rows, y{tol}))"]  # fmt: skip
    if hasattr(found, "schema"):
        begin.append("from mercer.command.models import training_table")
        rows = [f"table, _ = training_table(model, {data!r}{reader})"]
        if hasattr(found, "topics"):
            rows.append("table = [text or '' for text in table[table.columns[0]].tolist()]")
        return [*begin, "", loaded, *rows, f"print(verify(model.pipeline, table{tol}))"]
    drop = f".drop({', '.join(map(repr, options['drop']))})" if options["drop"] else ""
    rows = ["X, y = table.matrix(), None"]
    if target is not None:
        rows = [f"X, y = table.drop({target!r}).matrix(), table[{target!r}]"]
    return [*begin, "from mercer.data import read", "", loaded,
            f"table = read({data!r}{reader}){drop}", *rows,
            f"print(verify(model, X, y{tol}))"]  # fmt: skip
