"""Puts the changes of one repair in an order in which they can be made; on disk, because they may be millions.

A row that takes a unique value from another row must wait until that row has let go of it: such updates come in that
order, and rows that wait for each other ("swapped") are deleted and inserted again in one transaction, all or none.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from types import TracebackType
from typing import Literal, NamedTuple

from cdc_consumer.parity.canonical import SESSION
from cdc_consumer.parity.model import Difference, Shape, TableName
from cdc_consumer.parity.repair.conflicts import holders, takers
from cdc_consumer.parity.repair.order import parents_first
from cdc_consumer.parity.repair.spool import Spool
from cdc_consumer.parity.repair.statements import Change, change_of, copies
from cdc_consumer.parity.repair.target import Target, read_target
from cdc_consumer.parity.schema.needs import by_need
from shared.mysql import Connection, rows

#: rows, and characters of literals, of one transaction at most; what belongs together may be more
CHUNK_ROWS = 500
CHUNK_CHARACTERS = 16 << 20
#: updates that are one transaction because they may hold each other's unique values, at most
MOST_HIDDEN = 1000

#: inserts come last because an update may set free the unique values they need
Verb = Literal["delete", "update", "insert"]
#: one row of a table with a key, or several rows that are changed all or none
Unit = tuple[Change, ...]


class Chunk(NamedTuple):
    """Holds the changes of one transaction."""

    target: Target
    units: tuple[Unit, ...]

    @property
    def changes(self) -> list[Change]:
        return list(chain.from_iterable(self.units))


class Plan:
    """Reads all differences once; then its chunks can be read as often as needed. Needs 8 bytes of memory a row."""

    def __init__(
        self,
        connection: Connection,
        differences: Iterable[Difference],
        shapes: Mapping[TableName, Shape],
        system_database: str,
        doubt: Callable[[Change, Shape], str] = lambda change, shape: "",
    ) -> None:
        """`connection` leads to the follower and gets canonical.SESSION; `doubt` is as in `Proof`.

        Raises pymysql.err.MySQLError.
        """
        for sql in SESSION:
            rows(connection, sql)
        self._connection = connection
        self._doubt = doubt
        self._spool = Spool()
        self._targets: dict[TableName, Target] = {}
        #: places in the spool
        self._places: dict[tuple[TableName, Verb], array[int]] = defaultdict(lambda: array("Q"))
        #: of rows that take keys or unique values from each other; each unit after those it waits for
        self._entangled: dict[TableName, list[tuple[int, ...]]] = defaultdict(list)
        #: differences that cannot be repaired: table and why -> how many
        self.refused: Counter[tuple[TableName, str]] = Counter()
        for difference in differences:
            if difference.table not in self._targets:
                target = read_target(connection, shapes[difference.table], system_database)
                self._targets[difference.table] = target
            self._add(difference)
        #: parents first
        self.tables = parents_first(connection, {name for name, _ in self._places})
        for name in self.tables:
            self._keep_together(self._targets[name])
            if self._targets[name].shape.key:
                self._disentangle(self._targets[name])

    def __len__(self) -> int:
        """Rows to change; a table without a key counts equal ones once."""
        entangled = chain.from_iterable(self._entangled.values())
        return sum(map(len, self._places.values())) + sum(map(len, entangled))

    def __enter__(self) -> Plan:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._spool.close()

    @property
    def targets(self) -> list[Target]:
        return [self._targets[name] for name in self.tables]

    def chunks(self) -> Iterator[Chunk]:
        """Deletes from the children to the parents, then updates and inserts from the parents to the children."""
        for name in reversed(self.tables):
            yield from self._pack(name, "delete", undo=False)
        for name in self.tables:
            yield from self._pack(name, "update", undo=False)
            yield from self._pack(name, "insert", undo=False)

    def undo_chunks(self) -> Iterator[Chunk]:
        """Return what takes the chunks back, the last first."""
        for name in reversed(self.tables):
            yield from self._pack(name, "insert", undo=True)
            yield from self._pack(name, "update", undo=True)
        for name in self.tables:
            yield from self._pack(name, "delete", undo=True)

    def _add(self, difference: Difference) -> None:
        target = self._targets[difference.table]
        change = change_of(difference)
        if change is None or target.refusal:
            self.refused[difference.table, target.refusal or "its row is too long for a hash"] += 1
        elif doubt := self._doubt(change, target.shape):
            self.refused[difference.table, doubt] += 1
        else:
            self._places[difference.table, _verb(change)].append(self._spool.append(change))

    def _keep_together(self, target: Target) -> None:
        """Insert a row in the transaction that deletes the row whose place it takes.

        A missing 'a' and an extra 'A' are one row to the consumer: were one committed later than the other, it might
        look for the row in between.
        """
        name = target.shape.name
        inserts, deletes = self._places[name, "insert"], self._places[name, "delete"]
        keys = target.uniques if not target.shape.key else (target.shape.key,) if target.text_key else ()
        if not (keys and inserts and deletes):
            return
        taken: dict[str, set[int]] = defaultdict(set)
        for place, digest in holders(self._connection, target, keys, self._spool.read_all(inserts)):
            taken[digest].add(place)
        pairs: dict[int, set[int]] = defaultdict(set)
        for place, extra in self._spool.read_all(deletes):
            for other in taken.get(extra.before.hash, ()) if extra.before else ():
                pairs[place].add(other)
                pairs[other].add(place)
        self._take_out(name, ("insert", "delete"), list(by_need(pairs, lambda place: sorted(pairs[place]))))

    def _disentangle(self, target: Target) -> None:
        """Put the updates that take a unique value from another row in order."""
        name = target.shape.name
        places = self._places[name, "update"]
        waits: dict[int, set[str]] = defaultdict(set)
        for place, digest in takers(self._connection, target, self._spool.read_all(places)):
            waits[place].add(digest)
        for place, digest in _ring(target, self._spool.read_all(places)):
            waits[place].add(digest)
        if not waits:
            return
        wanted = set(chain.from_iterable(waits.values()))
        found = ((place, change.before) for place, change in self._spool.read_all(places))
        # a holder that is no update is deleted before, or the consumer has moved it
        holding = {image.hash: place for place, image in found if image is not None and image.hash in wanted}
        needs = {place: [holding[digest] for digest in sorted(waits[place]) if digest in holding] for place in waits}
        together = list(by_need(needs, lambda place: needs.get(place, ())))
        circles = [places for places in together if len(places) > 1]
        self._take_out(name, ("update",), together)
        if target.outside and circles:
            lost = f"they hold each other's unique values, and to insert them again would lose {target.outside[0]}"
            self.refused[name, lost] += sum(map(len, circles))
            self._entangled[name] = [places for places in self._entangled[name] if places not in circles]

    def _take_out(self, name: TableName, verbs: tuple[Verb, ...], units: list[tuple[int, ...]]) -> None:
        """Make these places of the verbs units of their own."""
        taken = set(chain.from_iterable(units))
        for verb in verbs:
            self._places[name, verb] = array("Q", (place for place in self._places[name, verb] if place not in taken))
        self._entangled[name] += units

    def _pack(self, name: TableName, verb: Verb, *, undo: bool) -> Iterator[Chunk]:
        target = self._targets[name]
        units: list[Unit] = []
        number = size = 0
        for unit in self._units(name, verb, undo):
            more, larger = sum(change.rows for change in unit), sum(change.characters for change in unit)
            if units and (number + more > CHUNK_ROWS or size + larger > CHUNK_CHARACTERS):
                yield _chunk(target, units)
                units, number, size = [], 0, 0
            units.append(unit)
            number, size = number + more, size + larger
        if units:
            yield _chunk(target, units)

    def _units(self, name: TableName, verb: Verb, undo: bool) -> Iterator[Unit]:
        entangled = self._entangled.get(name, []) if verb == "update" else []
        alone = self._places.get((name, verb), array("Q"))
        every = chain(entangled, ((place,) for place in alone))
        if undo:
            every = chain(((place,) for place in reversed(alone)), reversed(entangled))
        for places in every:
            unit = tuple(change for _, change in self._spool.read_all(places))
            yield tuple(change.reversed for change in unit) if undo else unit


def _ring(target: Target, updates: Iterable[tuple[int, Change]]) -> list[tuple[int, str]]:
    """The places of updates whose unique values nobody can ask for, each with the hash of another one: a circle.

    They may hold each other's. Of more than MOST_HIDDEN none: each is made by itself then, and the server refuses what
    another row holds. So it is where inserting a row again would lose something of it.
    """
    found: list[tuple[int, str]] = []
    if not target.hidden or target.outside:
        return found
    for place, change in updates:
        before, after = change.before, change.after
        if before and after and any(before.row[name] != after.row[name] for name in target.hidden):
            found.append((place, before.hash))
        if len(found) > MOST_HIDDEN:
            return []
    return [(place, digest) for (place, _), (_, digest) in zip(found, found[1:] + found[:1], strict=True)]


def _verb(change: Change) -> Verb:
    if change.before is not None and change.after is not None and change.before.hash != change.after.hash:
        return "update"
    return "delete" if copies(change.before) > copies(change.after) else "insert"


def _chunk(target: Target, units: list[Unit]) -> Chunk:
    """Without a key a row is found by a scan of the table, which all rows of the transaction share."""
    return Chunk(target, tuple(units) if target.shape.key else (tuple(chain.from_iterable(units)),))
