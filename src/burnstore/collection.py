"""Python's garbage collector, out of the way while many small objects are made at once.

Listing 20,000 tensors makes 20,000 of each of a few kinds of object, none of them garbage, and the collector looks through
all of them again and again: half of the time. It belongs to the whole process, so it is left alone while other threads run.
"""

from __future__ import annotations

import gc
import sys


class CollectionPaused:
    """`with CollectionPaused():` no automatic collection inside, if this thread is the only one."""

    __slots__ = ("_paused",)

    def __enter__(self) -> None:
        threading = sys.modules.get("threading")
        self._paused = gc.isenabled() and (threading is None or threading.active_count() == 1)
        if self._paused:
            gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._paused:
            gc.enable()
