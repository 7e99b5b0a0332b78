"""A trajectory cut into lines: where poses are missing, and after SEGMENT_POSES."""
from collections.abc import Iterator
from typing import Optional

import numpy as np

from .result_lines import ResultLine

SEGMENT_POSES = 5000  # of a line


class PoseLines:
    """Takes results one by one. A line of one pose is a place that has none on either side."""

    def __init__(self) -> None:
        self._line: "list[tuple[int, np.ndarray]]" = []
        self._is_carried = False  # its first pose ends the line before

    def add(self, result: ResultLine) -> "Iterator[list[tuple[int, np.ndarray]]]":
        """Yields the line that is complete now, if one is."""
        if result.pose is None:
            yield from self._cut(None)
            return
        self._line.append((result.stamp_ns, result.pose[:3]))
        if len(self._line) >= SEGMENT_POSES:
            yield from self._cut(self._line[-1])

    def end(self) -> "Iterator[list[tuple[int, np.ndarray]]]":
        """Yields the last line, if there is one."""
        yield from self._cut(None)

    def _cut(self, first: "Optional[tuple[int, np.ndarray]]") -> "Iterator[list[tuple[int, np.ndarray]]]":
        """The next line begins with `first`."""
        line, is_carried = self._line, self._is_carried
        self._line, self._is_carried = ([], False) if first is None else ([first], True)
        if len(line) >= (2 if is_carried else 1):
            yield line
