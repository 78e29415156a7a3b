"""Which worker does what: tasks where blocks are, and blocks as evenly as they can be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def placed_on(holder: str) -> dict[str, Any]:
    """Return the options of tasks for a worker; others may have them when it is gone."""
    return {"workers": [holder], "allow_other_workers": True} if holder else {}


def holders_of(client: Any, blocks: list[Any]) -> list[str]:
    """Return the worker that holds each block; "" where none does yet."""
    holders = client.who_has(blocks)
    return [min(holders.get(block.key) or [""]) for block in blocks]


def grouped(holders: list[str]) -> tuple[list[str], list[list[int]]]:
    """Return the workers that hold blocks, and the numbers of the blocks of each.

    Examples
    --------
    >>> grouped(["a", "b", "a"])
    (['a', 'b'], [[0, 2], [1]])
    """
    groups: dict[str, list[int]] = {}
    for b, holder in enumerate(holders):
        groups.setdefault(holder, []).append(b)
    return list(groups), list(groups.values())


def evened(holders: list[str], sizes: list[int], threads: Mapping[str, int]) -> list[str]:
    """Return better holders: a pass takes as long as the worker with the most rows.

    Parameters
    ----------
    holders : list of str
        The worker of each block.
    sizes : list of int
        Rows of each block.
    threads : mapping of str to int
        All workers, and how many tasks each runs at once.

    Returns
    -------
    list of str
        Blocks change from the worker with the most rows a thread to that with the least, one by
        one, as long as that helps.

    Examples
    --------
    >>> evened(["a", "a", "a", "b"], [10, 10, 10, 10], {"a": 1, "b": 1})
    ['a', 'a', 'b', 'b']
    """
    if len(threads) < 2 or not set(holders) <= set(threads):
        return holders
    found, load = list(holders), dict.fromkeys(threads, 0.0)
    for holder, size in zip(holders, sizes, strict=True):
        load[holder] += size / threads[holder]
    for _ in range(len(holders)):
        most, least = max(load, key=load.__getitem__), min(load, key=load.__getitem__)
        own = [b for b, holder in enumerate(found) if holder == most]
        b = min(own, key=lambda number: (sizes[number], -number))
        if load[least] + sizes[b] / threads[least] >= load[most]:
            break
        found[b] = least
        load[most] -= sizes[b] / threads[most]
        load[least] += sizes[b] / threads[least]
    return found
