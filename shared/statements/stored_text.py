"""Tells which views, routines and events are logged in one character set.

The leader's own words stand before the client's.
"""

from __future__ import annotations

from shared.statements.tokens import Tokens, Unreadable

#: characteristics of a routine, which the leader writes itself, by their first word: how many tokens follow it
_CHARACTERISTICS = {
    "COMMENT": 1, "LANGUAGE": 1, "NOT": 1, "DETERMINISTIC": 0, "CONTAINS": 1, "NO": 1, "READS": 2, "MODIFIES": 2,
    "SQL": 2,
}  # fmt: skip
#: what may stand behind the name of a type: how many tokens follow it
_OF_TYPES = {"UNSIGNED": 0, "ZEROFILL": 0, "BINARY": 0, "CHARSET": 1, "COLLATE": 1}


def in_one_charset(sql: bytes, sql_mode: int, charset: str) -> bool:
    """Tell whether all of a CREATE VIEW, PROCEDURE, FUNCTION or EVENT can be read in its client's character set.

    That is so where the leader's own words are ASCII: what stands before the query of a view, or before the body of a
    routine, but for its parameters; and before the word EVENT.
    """
    try:
        return _own_words(sql, Tokens(sql, sql_mode, charset)).isascii()
    except Unreadable:
        return False


def _own_words(sql: bytes, tokens: Tokens) -> bytes:
    """What the leader wrote itself of such a statement; of another one all."""
    while tokens.word not in ("VIEW", "PROCEDURE", "FUNCTION", "EVENT"):
        if tokens.at_end:
            return sql
        tokens.advance()
    if tokens.word == "EVENT":
        return sql[: tokens.start]
    before, begin = b"", 0
    if tokens.word == "VIEW":
        while tokens.word != "AS" and not tokens.at_end:
            tokens.advance()
    else:
        while tokens.word != "(" and not tokens.at_end:
            tokens.advance()
        before = sql[: tokens.start]
        _step_over_parentheses(tokens)
        begin = tokens.start
        _step_over_characteristics(tokens)
    return before + sql[begin : tokens.start]


def _step_over_characteristics(tokens: Tokens) -> None:
    if tokens.take("RETURNS"):
        tokens.advance()
        if tokens.word == "(":
            _step_over_parentheses(tokens)
        _step_over(tokens, _OF_TYPES)
    _step_over(tokens, _CHARACTERISTICS)


def _step_over(tokens: Tokens, clauses: dict[str, int]) -> None:
    while tokens.word in clauses:
        for _ in range(1 + clauses[tokens.word]):
            tokens.advance()


def _step_over_parentheses(tokens: Tokens) -> None:
    """Step over what stands in parentheses, which may hold others."""
    depth = 0
    while not tokens.at_end:
        depth += {"(": 1, ")": -1}.get(tokens.word, 0)
        tokens.advance()
        if not depth:
            return
    raise Unreadable("a parenthesis is not closed")
