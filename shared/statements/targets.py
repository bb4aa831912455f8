"""What follows a statement's head: readers of the objects it writes, each with its database."""

from __future__ import annotations

from collections.abc import Callable

from shared.statements.tokens import Tokens, Unreadable

#: database and name of each object a statement writes
Targets = list[tuple[str, str]]
#: reads the targets that follow a head, none when the server itself is the target; takes the session's database
Reader = Callable[[Tokens, str], Targets]


def one_object(tokens: Tokens, database: str) -> Targets:
    """Read [database.]name."""
    home, name = database, tokens.name()
    if tokens.take("."):
        home, name = name, tokens.name()
    return [(_known(home), name)]


def objects(tokens: Tokens, database: str) -> Targets:
    """Read [database.]name, ... [RESTRICT | CASCADE]."""
    targets = one_object(tokens, database)
    while tokens.take(","):
        targets += one_object(tokens, database)
    tokens.take("RESTRICT", "CASCADE")
    return targets


def renames(tokens: Tokens, database: str) -> Targets:
    """Read [database.]name. TO [database.]name, ..."""
    targets: Targets = []
    while not targets or tokens.take(","):
        targets += one_object(tokens, database)
        tokens.expect("TO")
        targets += one_object(tokens, database)
    return targets


def altered_table(tokens: Tokens, database: str) -> Targets:
    """Return [database.]name, then actions, of which two write another table.

    RENAME and PARTITION are reserved, so neither can be a column of that name.
    """
    targets = one_object(tokens, database)
    renamed: Targets = []
    while not tokens.at_end:
        if tokens.take("RENAME"):
            if tokens.word not in ("COLUMN", "INDEX", "KEY"):
                tokens.take("TO", "AS", "=")
                renamed = one_object(tokens, database)  # of several the last one counts
        elif tokens.take("EXCHANGE"):
            if tokens.take("PARTITION") and not tokens.take("BY"):
                tokens.name()
                tokens.expect("WITH")
                tokens.expect("TABLE")
                targets += one_object(tokens, database)
        elif tokens.word == ";":
            tokens.expect_end()
        else:
            tokens.advance()
    return targets + renamed


def altered_event(tokens: Tokens, database: str) -> Targets:
    """Read [database.]name [ON SCHEDULE ...] [RENAME TO [database.]name] [DO body]."""
    targets = one_object(tokens, database)
    while not tokens.at_end and tokens.word != "DO":
        if tokens.take("RENAME"):
            tokens.expect("TO")
            targets += one_object(tokens, database)
        else:
            tokens.advance()
    return targets


def index(tokens: Tokens, database: str) -> Targets:
    """Read name [USING method] ON [database.]table."""
    name = tokens.name()
    while not tokens.take("ON"):
        if tokens.at_end:
            raise Unreadable("ON is missing")
        tokens.advance()
    ((home, table),) = one_object(tokens, database)
    return [(home, name), (home, table)]


def database_name(tokens: Tokens, database: str) -> Targets:
    """Read a database's name."""
    name = _known(tokens.name())
    return [(name, name)]


def altered_database(tokens: Tokens, database: str) -> Targets:
    """Read [name], then options.

    CHARSET and ENCRYPTION are not reserved: MySQL takes the first of them for the name.
    """
    if tokens.word in ("CHARACTER", "COLLATE", "DEFAULT", "READ"):
        return [(_known(database), database)]
    targets = database_name(tokens, database)
    if tokens.word not in ("CHARACTER", "CHARSET", "COLLATE", "DEFAULT", "ENCRYPTION", "READ"):
        raise Unreadable("no option follows the database")
    return targets


def created_function(tokens: Tokens, database: str) -> Targets:
    """Read [database.]name(; without the parenthesis it is a loadable function, which belongs to the server."""
    name = tokens.name()
    if tokens.word == "RETURNS":
        return []
    if tokens.take("."):
        return [(_known(name), tokens.name())]
    return [(_known(database), name)]


def dropped_function(tokens: Tokens, database: str) -> Targets:
    """Read [database.]name; without any database it can only be a loadable function."""
    name = tokens.name()
    if tokens.take("."):
        return [(_known(name), tokens.name())]
    return [(_known(database), name)] if database else []


def _known(database: str) -> str:
    if not database:
        raise Unreadable("it names no database and its session has none")
    if "\ufffd" in database:
        raise Unreadable("the name of its database cannot be known in the client's character set")
    return database


def whole(read: Reader) -> Reader:
    """Return that, and nothing after it."""

    def whole(tokens: Tokens, database: str) -> Targets:
        targets = read(tokens, database)
        tokens.expect_end()
        return targets

    return whole
