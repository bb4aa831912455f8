"""Runs as they happen, for the tests of the report: one of a follower with every kind of damage, and two without."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from typing import Any

from cdc_consumer.parity.model import (
    STRIP_CELLS,
    Difference,
    Evidence,
    KeyEvent,
    Kind,
    SchemaDifference,
    Stage,
    TableName,
    TableResult,
    Undecided,
)
from cdc_consumer.parity.run_model import Round, Run, Sample, ServerFacts

ORDERS = TableName("shop", "orders")
CUSTOMERS = TableName("shop", "customers")
VISITS = TableName("shop", "visits")
COUNTERS = TableName("shop", "counters")
ARCHIVE = TableName("shop", "archive")
WRONGLY: Stage = "applied wrongly, or changed on the follower afterwards"
#: what must stay text wherever it stands
HOSTILE = "</script></style><img src=x onerror=alert(1)>\"'&<!--\x00\x1b[31m\u202e\n"
BROKEN = "'a' <b> & \"c\" \ud800 \x85\ufeff"

_POSITION = "binlog.000042:{}"
_COMMITTED = 1_795_256_100_000_000


def text(value: str, charset: str = "utf8mb4", codec: str = "utf-8") -> str:
    """The literal of a text."""
    return f"_{charset} x'{value.encode(codec, 'surrogateescape').hex()}'"


def json_literal(value: str) -> str:
    return f"CAST(CONVERT(x'{value.encode().hex()}' USING utf8mb4) AS JSON)"


def row_hash(row: Mapping[str, str] | None) -> str | None:
    return None if row is None else hashlib.sha256(repr(sorted(row.items())).encode()).hexdigest()


def difference(
    table: TableName, key: Mapping[str, str], leader: Mapping[str, str] | None, follower: Mapping[str, str] | None,
    stage: Stage = "unknown", cause: str = "", *, copies: tuple[int, int] | None = None, at: int = 1_200,
    events: int = 1, proof: Any = "no event",
) -> Difference:  # fmt: skip
    kind: Kind = "copies" if copies else "missing" if follower is None else "extra" if leader is None else "changed"
    seen = tuple(
        KeyEvent(4_000 + at + n, 5_000 + at + n, ("Add", "Update")[n > 0], _POSITION.format(at + 310 * n),
                 f"3e11fa47-71ca-11e1-9e33-c80aa9429562:{at + n}", _COMMITTED + 1_234_567 * n)
        for n in range(events)
    )  # fmt: skip
    evidence = Evidence(
        proof, _POSITION.format(at + 90_000), _POSITION.format(at + 95_310), _POSITION.format(at + 97_802),
        _POSITION.format(at + 95_310), 2, seen,
    )  # fmt: skip
    return Difference(
        table,
        kind,
        key,
        leader,
        follower,
        row_hash(leader),
        row_hash(follower and {**follower, "": "follower"}),
        evidence,
        stage,
        cause,
        copies,
    )


def order(number: int, **changed: str) -> dict[str, str]:
    """A row of shop.orders."""
    row = {
        "id": str(number), "customer": str(number * 7 % 911), "state": text("paid"), "total": f"{number * 1.37:.2f}",
        "rate": "28806.56333333333", "note": text("Bitte beim Nachbarn abgeben"), "placed": "'2026-11-20 08:15:00.000000'",
        "payload": json_literal('{"lines": 3, "weight": 1.25}'),
    }  # fmt: skip
    return row | changed


def customer(number: int, name: str, /, **changed: str) -> dict[str, str]:
    mail = text(f"{name.split()[0].lower()}@example.org", "latin1", "latin-1")
    return {"id": str(number), "name": text(name), "mail": mail, "photo": "x''", "born": "NULL"} | changed


def differences() -> Iterator[Difference]:
    """Of every kind, with most of the damage that happens."""
    for number in range(1_201, 1_433):
        row = order(number)
        yield difference(
            ORDERS,
            {"id": row["id"]},
            row,
            None,
            "published but not applied",
            "a block of rows is missing, id 1201 to 1432",
            at=number,
        )
    for number in range(40_000, 40_031):
        shifted = order(number, placed="'2026-11-20 09:15:00.000000'")
        yield difference(
            ORDERS,
            {"id": str(number)},
            order(number),
            shifted,
            WRONGLY,
            "placed is 1 hour later",
            events=2,
            at=number,
        )
    one = order(52_007)
    yield difference(
        ORDERS, {"id": "52007"}, one, one | {"rate": "28806.563333333334"}, WRONGLY, "rate is rounded to 15 digits"
    )
    yield difference(
        ORDERS, {"id": "52008"}, order(52_008, note=text("Klingel defekt, bitte anrufen. " * 30 + "Danke!")),
        order(52_008, note=text("Klingel defekt, bitte anrufen. " * 30 + "Danke"), state=text("paid ")),
        "follower written by a stranger", events=0, proof="idle",
    )  # fmt: skip
    yield difference(ORDERS, {"id": "60001"}, None, order(60_001), "follower written by a stranger", events=0)
    yield difference(
        ORDERS, {"id": "60002"}, order(60_002), order(60_002, payload=json_literal('{"lines": 3, "weight": 1.250}')), proof="after-image",
        stage=WRONGLY, cause="payload has numbers of another type", events=3,
    )  # fmt: skip
    same = order(60_003)
    yield difference(ORDERS, {"id": "60003"}, same, dict(same), WRONGLY, "payload has numbers of another type")
    for number, name in enumerate(["José Muñoz", "Zoë Kravitz", "Jürgen Groß"], 310):
        twice = name.encode().decode("latin-1")
        yield difference(
            CUSTOMERS, {"id": str(number)}, customer(number, name), customer(number, name, name=text(twice)),
            WRONGLY, "name is encoded twice",
        )  # fmt: skip
    yield difference(
        CUSTOMERS, {"id": "313"}, customer(313, "Ada Lovelace", photo="x'89504e470d0a1a0a" + "00ff" * 300 + "'", mail=text("", "latin1")),
        customer(313, "Ada Lovelace\u200b", photo="x'89504e470d0a1a0a" + "00ff" * 200 + "00fe" + "00ff" * 99 + "'", mail="NULL"),
        "never published",
    )  # fmt: skip
    visit = {"page": text("/index.html"), "agent": text("curl/8.4")}
    yield difference(VISITS, {}, visit, visit, "published but not applied", "", copies=(3, 2))
    yield difference(VISITS, {}, visit | {"page": text("/" + HOSTILE)}, None, copies=(1, 0))


def schema() -> list[SchemaDifference]:
    return [
        SchemaDifference(
            "breaking", "column", "shop", "orders", "total", "column shop.orders.total is decimal(8,2) on the follower, not decimal(10,2)",
            "`total` decimal(10,2) NOT NULL DEFAULT '0.00'", "`total` decimal(8,2) NOT NULL DEFAULT '0.00'",
            "ALTER TABLE `shop`.`orders` MODIFY COLUMN `total` decimal(10,2) NOT NULL DEFAULT '0.00';",
        ),
        SchemaDifference(
            "integrity", "foreign key", "shop", "orders", "orders_customer", "foreign key shop.orders.orders_customer is missing on the follower",
            "CONSTRAINT `orders_customer` FOREIGN KEY (`customer`)\n  REFERENCES `customers` (`id`) ON DELETE CASCADE", None,
            "ALTER TABLE `shop`.`orders` ADD CONSTRAINT `orders_customer` FOREIGN KEY (`customer`) REFERENCES `customers` (`id`) ON DELETE CASCADE;",
        ),
        SchemaDifference("performance", "key", "shop", "customers", "by_mail", "key shop.customers.by_mail is defined differently on the follower", "KEY `by_mail` (`mail`)", "KEY `by_mail` (`mail`) INVISIBLE"),
        SchemaDifference("cosmetic", "table", "shop", "archive", "", "table shop.archive has the comment (none) on the follower, old orders on the leader", "COMMENT='old orders'", "COMMENT=''"),
        SchemaDifference("expected", "trigger", "shop", "orders", "orders_ai", "trigger shop.orders.orders_ai is not created on the follower", "CREATE TRIGGER ...", None),
    ]  # fmt: skip


def _strip(*runs: tuple[int, int, int]) -> tuple[int, ...]:
    cells = [0] * STRIP_CELLS
    for first, last, rows in runs:
        cells[first:last] = [rows] * (last - first)
    return tuple(cells)


def tables() -> list[TableResult]:
    digest = hashlib.sha256(b"orders").hexdigest()
    found = [
        TableResult(
            ORDERS, "different", leader_rows=1_804_112, follower_rows=1_803_881, leaves=1_205, dirty_leaves=9, suspects=702, missing=232,
            extra=1, changed=35, digest=digest, split="integer", seconds=9.4, strip=_strip((2, 5, 77), (21, 22, 31), (27, 28, 3), (33, 34, 2)),
            excluded=(("search", "VIRTUAL generated"),),
        ),
        TableResult(
            CUSTOMERS, "different", leader_rows=120_500, follower_rows=120_500, leaves=81, dirty_leaves=1, suspects=9, changed=4,
            digest=hashlib.sha256(b"customers").hexdigest(), split="probe", seconds=0.9, strip=_strip((40, 41, 4)),
        ),
        TableResult(VISITS, "different", leader_rows=4_200, follower_rows=4_198, suspects=2, copies=2, split="no key", seconds=0.2),
        TableResult(COUNTERS, "undecided", "1 row is written faster than the follower can be read", leader_rows=12, follower_rows=12, undecided=1,
                    split="one range", seconds=31.0, digest=hashlib.sha256(b"counters").hexdigest(), strip=_strip()),
        TableResult(ARCHIVE, "skipped", "engine MyISAM takes no part in transactions"),
    ]  # fmt: skip
    names = (
        "addresses",
        "baskets",
        "brands",
        "categories",
        "coupons",
        "invoices",
        "payments",
        "products",
        "stock",
        "users",
    )
    for number, name in enumerate(names):
        rows = 7_919 * (number + 3)
        found.append(
            TableResult(
                TableName("shop", name), leader_rows=rows, follower_rows=rows, leaves=rows // 1_500 + 1, split="integer",
                digest=hashlib.sha256(name.encode()).hexdigest(), seconds=rows / 400_000, strip=_strip(),
            )
        )  # fmt: skip
    return found


def _run(**changed: Any) -> Run:
    samples = [
        Sample(at / 2, int(200_000 * at * (1 + 0.2 * math.sin(at / 5))), max(0, 700 - 30 * abs(at - 15)),
               None if at in (20, 21) else 0.4 + abs(math.sin(at / 4)) * 1.8, 3 + at % 4)
        for at in range(1, 42)
    ]  # fmt: skip
    values: dict[str, Any] = {
        "id": "20261121T101500Z-4f2a", "started": "2026-11-21T10:15:00Z", "ended": "2026-11-21T10:15:42Z",
        "profile": "profiles/parity_profile.toml", "plan": hashlib.sha256(b"plan").hexdigest(),
        "leader": ServerFacts("127.0.0.1:3080", "9.7.4", "3e11fa47-71ca-11e1-9e33-c80aa9429562", "binlog.000042:91234", "binlog.000042:188002"),
        "follower": ServerFacts("127.0.0.1:3090", "8.4.3", "7b2e61aa-71ca-11e1-9e33-c80aa9429562", "binlog.000042:90011", "binlog.000042:188002"),
        "master": "local[2]", "spark": "4.3.0", "java": "17.0.12", "seconds": 41.7, "tables": tables(), "differences": list(differences()),
        "undecided": [Undecided(COUNTERS, {"name": text("page views")}, "written faster than the follower can be read: 9 rounds and still hot")],
        "schema": schema(),
        "rounds": [Round(1, 10.1, 704, 421, 0, 283, 1.7), Round(2, 12.4, 283, 8, 270, 5, 2.1), Round(3, 15.0, 5, 0, 4, 1, 1.2)],
        "samples": samples, "leaf_milliseconds": {10: 41, 20: 130, 40: 611, 80: 1_204, 160: 288, 320: 31, 640: 4}, "options": {},
    }  # fmt: skip
    values |= changed
    return Run(**{"total_differences": len(values["differences"]), **values})


def different_run(**changed: Any) -> Run:
    """A follower with a lost block, wrong times, double encoding and more."""
    return _run(**changed)


def equal_run(**changed: Any) -> Run:
    equal = [table for table in tables() if table.verdict == "equal"]
    schema_ = [item for item in schema() if item.grade in ("cosmetic", "expected")]
    rounds = [Round(1, 3.1, 438, 430, 0, 8, 2.0), Round(2, 6.2, 8, 8, 0, 0, 2.1)]
    return _run(**{"tables": equal, "differences": [], "undecided": [], "schema": schema_, "rounds": rounds, **changed})


def undecided_run(**changed: Any) -> Run:
    open_ = [table for table in tables() if table.verdict != "different"]
    return _run(tables=open_, differences=[], schema=[], **changed)


def long_run() -> Run:
    """Names as long as MySQL takes them, and values without a blank."""
    name = "W" * 64
    table = TableName(name, name)
    row = {
        name: text("W" * 300),
        name[:-1] + "x": "x'" + "ab" * 3_000 + "'",
        "j": json_literal("[" + "1," * 900 + "1]"),
    }
    other = {column: literal.replace("57", "58").replace("ab", "ba") for column, literal in row.items()}
    sides = ((row, None), (None, row), (row, other))
    found = [difference(table, row, leader, follower, cause=name * 3) for leader, follower in sides]
    result = TableResult(
        table, "different", name * 2, missing=1, extra=1, changed=1, strip=_strip((0, 3, 1)), excluded=((name, name),)
    )
    item = SchemaDifference("breaking", "column", name, name, name, name * 2, name * 9, name * 8 + "x", name * 9)
    return _run(
        tables=[result],
        differences=found,
        undecided=[Undecided(table, row, name * 3)],
        schema=[item],
        profile=f"/{name * 2}",
    )
