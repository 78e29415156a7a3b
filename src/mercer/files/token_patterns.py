r"""Regular expressions that a model file may hold: those that every text is matched with in time.

A pattern such as ``(\w+\s?)+!`` takes time exponential in the length of a text, and a file is not
trusted to hold none. Taken is one class of characters, repeated: its matches are the runs of these
characters, found in one pass. A boundary ``\b`` may end it where the characters are those of words,
since a run ends at one by itself; after other classes each shorter end would be tried.
"""

from __future__ import annotations

import re
from typing import Any

_LONGEST = 200  # signs of a pattern
_REPEATED = r"(?:\+|\{[0-9]{1,2},?\})?"
_LINEAR = re.compile(
    r"(?:\(\?[aiu]+\))?(?:\\b)?"
    rf"(?:(?P<word>\\w)(?P=word)*{_REPEATED}(?:\\b)?"
    rf"|(?P<set>\\[dDsSW]|\[[^\[\]\\]+\]|\[(?:[^\[\]\\]|\\[wdsWDS\-.'])+\])(?P=set)*{_REPEATED})"
)


def is_linear_pattern(value: Any) -> bool:
    r"""Return whether a text is a pattern whose matches take time linear in the text searched.

    Examples
    --------
    >>> is_linear_pattern(r"(?u)\b\w\w+\b"), is_linear_pattern("[a-z'-]{2,}")
    (True, True)
    >>> is_linear_pattern(r"(\w+\s?)+!"), is_linear_pattern(r"[a-z]+\b")
    (False, False)
    """
    if not isinstance(value, str) or len(value) > _LONGEST or not _LINEAR.fullmatch(value):
        return False
    try:
        re.compile(value)
    except (re.error, OverflowError):
        return False
    return True
