"""A script of all kinds of statements with the databases each writes, and the sessions that it runs in."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any, NamedTuple

from pymysql.err import MySQLError

from docker.local.mysql_servers import Server
from shared.mysql import quote_name
from shared.statements.tokens import ANSI_QUOTES, NO_BACKSLASH_ESCAPES

#: Statements in the order they can run, each with the databases it writes: `h`ome and `a`way, and `s`, the session's.
#: {h} and {a} are the two as names; {s} is before what is left to the session's database, and empty when it has one;
#: {w} and {b} are characters that end in the byte of a backslash and of a backtick, where such exist; {qw}, {qb} and
#: {qv} are names with such.
SCRIPT = """
s  create table {s}t (id int primary key, a int, b varchar(99), c int, key k (a))
a  create table if not exists {a}.t1 (id bigint unsigned not null auto_increment, v varchar(10) character set latin1 default 'x' comment 'it''s {w}', primary key (id), unique key u (v(5) desc)) engine=innodb auto_increment=5 default charset=utf8mb4 comment='{w}'
h  create table {h}.g (a int, b int generated always as (a+1) virtual, c int as (a*2) stored not null, d int invisible default 5, check (a > 1) not enforced)
h  create table {h}.geo (g geometry not null srid 4326, spatial index sp (g), v vector(3), j json default (json_array()))
s  create table {s}p (id int not null, d int) partition by range (id) (partition p0 values less than (10), partition p1 values less than maxvalue)
h  create table {h}.k (id int) /*!50100 partition by key (id) partitions 4 */
h  /*!80000 create table {h}.x7(a int) */
a  create /*!80000 table */ {a}.x8(a int /* , */)
a  create table /*!080000 if not exists */ {a}.x9(a int)
a  create table /*!99999 {h}.nothing (a int) */ {a}.x10(a int)
a  create table /*!99999 a /* b */ c */ {a}.x11(a int) -- {w}
h  /* {w} */ create table {h}.x12(a int) # {w}
h  create table {h}.x13(a int); -- {w}
a  create table {a}.{qw}(a int) comment '{w}'
a  create table {a} . {qb}(a int)
h  create table {h} . e1(a int)
h  create table {h}.select(a int)
a  create table {a}.like_ like {s}t
h  create table {h}.like_ (like {a}.t1)
a  create table {a}.filled as select * from {s}t
h  create table {h}.filled (a int default 1 comment '{w}') ignore select 1 as a union all select 2
h  create table {h}.par (id int primary key)
a  create table {a}.c (pid int, constraint f foreign key (pid) references {h}.par (id) on delete cascade)
h  create table {h}.en (a enum('x','y;z') not null default 'x', f timestamp(6) null default current_timestamp(6), b varbinary(5) default x'ff00')
s  alter table {s}t add column x int not null default 0 after id, add y int first, drop column c, algorithm=instant
s  alter table {s}t modify a bigint unsigned not null, change b bb varchar(20) character set gbk
s  alter table {s}t alter column a set default 5, alter column bb set invisible
s  alter table {s}t add index i (a, x desc), rename index k to rename_, add unique key u (x, id)
s  alter table {s}t rename column y to `rename`, add exchange int, comment '{w}, rename to {a}.zzz'
s  alter table {s}t add constraint chk check (a > 0), add column e int default (4*/**/2)
s  alter table {s}t convert to character set utf8mb4, engine=innodb row_format=dynamic, auto_increment=100
s  alter table {s}t order by exchange
sa alter table {s}p exchange partition p0 with table {a}.part
sa alter table {a}.part rename to {s}part /* , rename to {a}.part */
sa alter table {s}part algorithm=copy, rename {a}.part
s  alter table {s}p truncate partition p0
s  alter table {s}p reorganize partition p1 into (partition n0 values less than (20), partition n1 values less than maxvalue)
s  alter table {s}p drop partition p0
s  alter table {s}p partition by hash(id) partitions 8
s  alter table {s}p coalesce partition 2
s  alter table {s}p remove partitioning
s  alter table {s}p disable keys
s  alter table {s}p force
s  alter table {s}p add column dd text, add fulltext index ft (dd)
s  alter table {s}p rename as {s}p_
s  alter table {s}p_ rename = {a}.p2, rename to {s}p
ah alter table {a}.{qw} comment '{w}', rename {h}.{qw}
ah alter table {a}.{qb} add column {qb} int comment '{b}''', rename to {h}.{qb}
ha rename table {h}.{qw} to {a}.{qw}, {h}.{qb} to {a}.{qb}
h  rename tables {h}.x7 to {h}.x7b, {h}.x12 to {h}.x7, {h}.x7b to {h}.x12
h  create index i on {h}.x7 (a desc)
s  create unique index i2 using btree on {s}t (id, a) comment '{w}' algorithm=inplace lock=none
s  create fulltext index ft2 on {s}p (dd)
h  create index {qw} on {h}.x7 ((a + 1))
h  drop index {qw} on {h}.x7
s  drop index i2 on {s}t
h  alter table {h}.x7 add primary key (a)
h  drop index `PRIMARY` on {h}.x7
s  truncate {s}p
a  truncate table {a}.like_
s  create view {s}v as select 1 as `{w}`
a  create or replace algorithm=merge definer=current_user sql security invoker view {a}.{qv} as select a, '{w}' from {h}.x7
a  create view if not exists {a}.{qv} as select '{w}'
a  alter algorithm=merge view {a}.{qv} as select '{b}'
sa drop view if exists {s}v, {a}.{qv}, {a}.nothing
a  create definer=root@localhost trigger {a}.{qw} before update on {a}.t1 for each row begin set new.v = '{w}'; set @rename = 'to'; end
a  drop trigger {a}.{qw}
a  drop trigger if exists {a}.{qw}
a  create procedure {a}.{qw}(in a int) comment '{w}' begin insert into {h}.x7 values ('{w}'); select 1; end
a  create procedure if not exists {a}.{qw}() select '{w}'
a  alter procedure {a}.{qw} comment '{b}'
a  drop procedure {a}.{qw}
s  create function {s}f(a int) returns int deterministic return a + 1
s  drop function {s}f
a  drop function if exists {a}.{qw}
a  create definer = 'root'@'localhost' event {a}.{qw} on schedule every 1 day starts '2090-01-01' do delete from {h}.x7
ah alter event {a}.{qw} on schedule every @rename day rename to {h}.{qw} do alter event e rename to {a}.e
h  drop event {h}.{qw}
h  create library {h}.{qw} language javascript as $$ export function f() {{ return /`/ }} $$
h  drop library {h}.{qw}
h  create table {h}.jd (id int primary key)
a  create json duality view {a}.jv as select json_duality_object('_id': id) from {h}.jd
a  create materialized view {a}.mv as select 1
a  drop view {a}.jv, {a}.mv
a  alter database {a} character set latin1
a  alter schema {a} collate utf8mb4_bin encryption 'N'
s  alter database {sd} default charset utf8mb4
ha drop table if exists {h}.x12, {a}.c, {a}.{qw}, {a}.{qb}, {h}.nothing cascade
a  drop tables {a}.t1
a  drop schema {a}
a  create schema if not exists {a} default character set utf8mb4 /*!80016 default encryption='n' */
a  create database if not exists {a}
a  drop database if exists {a}
"""


def second(codec: str, byte: int) -> str:
    """A character of that two-byte character set whose second byte is this one."""
    found = (bytes([first, byte]).decode(codec, "replace") for first in (0x95, 0xB3))
    return next(character for character in found if len(character) == 1)


class Session(NamedTuple):
    charset: str = "utf8mb4"
    codec: str = "utf-8"
    sql_mode: int = 0
    #: "home", "away" or "" for none
    uses: str = "home"
    #: ends the databases' names
    suffix: str = ""
    #: more to SET
    setting: str = ""
    #: "" for statements as they are, "prepared" or "routine" for where they run
    within: str = ""


BOTH = ANSI_QUOTES | NO_BACKSLASH_ESCAPES
SESSIONS = [
    Session(),
    Session(uses=""),
    Session(uses="away", suffix="_`. x"),
    Session(sql_mode=ANSI_QUOTES, suffix='_"é`'),
    Session(sql_mode=BOTH, uses="away"),
    Session(sql_mode=NO_BACKSLASH_ESCAPES, uses=""),
    Session(setting="sql_quote_show_create = 0"),
    Session(setting="lc_time_names = 'de_DE', foreign_key_checks = 0, explicit_defaults_for_timestamp = 0"),
    Session("gbk", "gbk", suffix="_注释" + second("gbk", 0x60)),
    Session("gbk", "gbk", sql_mode=BOTH, suffix="_注释" + second("gbk", 0x5C), uses="away"),
    Session("gb18030", "gb18030"),
    Session("sjis", "shift_jis"),
    Session("cp932", "cp932", suffix="_表示", uses="away"),
    Session("cp932", "cp932", sql_mode=NO_BACKSLASH_ESCAPES, suffix="_" + second("cp932", 0x60), uses=""),
    Session("big5", "big5"),
    Session("euckr", "euc_kr", suffix="_가"),
    Session("latin1", "cp1252", suffix="_été"),
    Session("cp1251", "cp1251", suffix="_да", uses="away"),
    Session("binary", "utf-8", suffix="_名"),
    Session(within="prepared", uses="away"),
    Session(within="routine", uses="away"),
]
#: what serves as {w} and {b} where it is not the characters of a two-byte character set
WIDE = {
    "euckr": "가나", "latin1": "éà", "cp1251": "да", "utf8mb4": "名é", "binary": "名é",
    # MySQL doubles the second byte of a gb18030 name when it is a backtick, and logs a DROP TABLE nobody can read
    "gb18030": second("gb18030", 0x5C) + "注",
}  # fmt: skip


@dataclass
class Script:
    """The script in one session, with two databases of its own."""

    leader: Server
    connection: Any
    session: Session

    def __post_init__(self) -> None:
        session = self.session
        quote = '"' if session.sql_mode & ANSI_QUOTES else "`"
        prefix = "d_" + secrets.token_hex(3)
        self.names = {"h": f"{prefix}_h{session.suffix}", "a": f"{prefix}_a{session.suffix}"}
        own = {"home": self.names["h"], "away": self.names["a"], "": ""}[session.uses]
        if session.within == "routine":  # a routine's statements run in its database
            own = self.names["h"]
        self.names["s"] = own or self.names["h"]
        wide = WIDE.get(session.charset) or second(session.codec, 0x5C) + second(session.codec, 0x60)
        quoted = {name: quote + text.replace(quote, quote * 2) + quote for name, text in self.names.items()}
        self.words = {
            "h": quoted["h"], "a": quoted["a"], "s": "" if own else quoted["h"] + ".", "sd": "" if own else quoted["h"],
            "w": wide[0], "b": wide[1], "qw": quote + wide[0] + quote, "qb": quote + wide[1] + quote,
            "qv": quote + "v" + wide[0] + quote,
        }  # fmt: skip

    def run(self, *statements: str) -> None:
        for sql in statements:
            self.connection.query(sql.encode(self.session.codec))

    def prepare(self) -> None:
        session = self.session
        self.leader.execute(*(f"create database {quote_name(self.names[name])}" for name in "ha"))
        self.run(f"set names {session.charset}", f"set sql_mode = {session.sql_mode}", "set @rename = 1")
        if session.setting:
            self.run(f"set {session.setting}")
        if session.uses:
            self.use({"home": "h", "away": "a"}[session.uses])
        self.run("create table {a}.part (id int not null, d int)".format(**self.words))

    def use(self, name: str) -> None:
        self.run(f"use {self.words[name]}")

    def step(self, sql: str) -> None:
        """Run one statement where the session says, or as it is when it cannot run there."""
        try:
            if self.session.within == "prepared":
                self.run("prepare p from '{}'".format(sql.replace("\\", "\\\\").replace("'", "\\'")), "execute p")
                return
            if self.session.within == "routine":
                runner = "{}.runner".format(self.words["h"])
                self.run(f"drop procedure if exists {runner}", f"create procedure {runner}() {sql}", f"call {runner}()")
                return
        except MySQLError as error:
            if error.args[0] not in NOT_THERE:
                raise
            self.use("h" if self.session.within == "routine" else "a")
        self.run(sql)
        if self.session.within == "routine":
            self.use("a")

    def close(self) -> None:
        names = [quote_name(self.names[name]) for name in "ha"]
        self.leader.execute("set foreign_key_checks = 0", *(f"drop database if exists {name}" for name in names))


#: not supported as a prepared statement; not allowed in a routine, and a syntax error there
NOT_THERE = (1295, 1303, 1314, 1357, 1576, 1064)
#: what `Script.step` logs besides
RUNNER = b"runner"
