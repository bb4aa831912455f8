"""Changes in a temporary file, found again by their place in it."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterable, Iterator

from cdc_consumer.parity.repair.statements import Change


class Spool:
    """Keeps changes in a file that vanishes when it is closed."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="cdc-repair-")  # noqa: SIM115

    def append(self, change: Change) -> int:
        """Returns its place."""
        place = self._file.seek(0, 2)
        pickle.dump(change, self._file, pickle.HIGHEST_PROTOCOL)
        return place

    def read(self, place: int) -> Change:
        self._file.seek(place)
        change = pickle.load(self._file)
        assert isinstance(change, Change)
        return change

    def read_all(self, places: Iterable[int]) -> Iterator[tuple[int, Change]]:
        for place in places:
            yield place, self.read(place)

    def close(self) -> None:
        self._file.close()
