"""What a call may use: the settings in force, memory, and threads.

`set_config` changes the process; `config` changes a `with` block of the current thread or task.
"""

from mercer.resources.idle import limit_idle
from mercer.resources.memory import (
    MemoryBudgetError,
    available_memory,
    explained_full_card,
    format_bytes,
    is_full_card,
    memory_budget,
    require_memory,
    rows_at_once,
    square_side,
    within_budget,
)
from mercer.resources.settings import (
    BACKENDS,
    PRODUCTS,
    Config,
    config,
    get_config,
    parse_bytes,
    set_config,
)
from mercer.resources.threads import call_threads, thread_limit

__all__ = [
    "BACKENDS",
    "Config",
    "MemoryBudgetError",
    "PRODUCTS",
    "available_memory",
    "explained_full_card",
    "call_threads",
    "config",
    "format_bytes",
    "is_full_card",
    "get_config",
    "limit_idle",
    "memory_budget",
    "parse_bytes",
    "require_memory",
    "rows_at_once",
    "set_config",
    "square_side",
    "thread_limit",
    "within_budget",
]
