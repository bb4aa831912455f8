"""Cuts a statement into tokens where the leader's own lexer cut it.

This is a lexer of our own, and not sqlglot's tokenizer, because three things decide here that sqlglot cannot be told:
`/*!80000 ... */` is SQL and not a comment; a client's gbk or sjis character may end in the byte of a backslash or of a
quote; and only the head of a statement may be read, because what follows need not be SQL at all (a JavaScript routine
with one backtick in it is a TokenError there). It also ends names at a no-break or an ideographic space, which MySQL
does not, and takes three times as long.
"""

from __future__ import annotations

import re
from functools import cache

#: bits of sql_mode; ANSI_QUOTES is a part of ANSI, also where it is not told beside it
ANSI_QUOTES = 1 << 2
ANSI = 1 << 18
NO_BACKSLASH_ESCAPES = 1 << 20

#: Python's codec for names in each client character set. Only codecs that agree with MySQL in every character they
#: decode are trusted; "ascii" stands where Python has none such, and beyond it a name is then not known. What is
#: missing (swe7, whose brackets are letters) cannot be read at all.
CODECS = {
    "utf8mb4": "utf-8", "utf8mb3": "utf-8", "utf8": "utf-8",
    "binary": "utf-8",  # MySQL takes names of a binary client as they are, and keeps names in UTF-8
    "latin1": "cp1252", "latin2": "iso8859_2", "latin5": "iso8859_9", "latin7": "iso8859_13", "koi8r": "koi8_r",
    "cp850": "cp850", "cp852": "cp852", "cp1250": "cp1250", "cp1251": "cp1251", "cp1257": "cp1257",
    "macce": "mac_latin2", "macroman": "mac_roman", "tis620": "tis_620",
    "gbk": "gbk", "gb2312": "gb2312", "cp932": "cp932", "euckr": "euc_kr",
    **dict.fromkeys(
        ("ascii", "armscii8", "big5", "cp1256", "cp866", "dec8", "eucjpms", "gb18030", "geostd8", "greek", "hebrew",
         "hp8", "keybcs2", "koi8u", "sjis", "ujis"),
        "ascii",
    ),
}  # fmt: skip

#: two-byte characters of the character sets in which the second byte may be that of a quote or a backslash
_WIDE = {
    "gbk": rb"[\x81-\xfe][\x40-\x7e\x80-\xfe]",
    "gb18030": rb"[\x81-\xfe][\x40-\x7e\x80-\xfe]",
    "big5": rb"[\xa1-\xf9][\x40-\x7e\xa1-\xfe]",
    "sjis": rb"[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]",
    "cp932": rb"[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]",
}
_BEYOND_UTF8MB3 = re.compile("[\U00010000-\U0010ffff]")
#: the no-break space of the character sets in which MySQL takes it for a blank
_BLANK = {
    **dict.fromkeys(
        ("armscii8", "cp1250", "dec8", "geostd8", "greek", "hebrew", "latin1", "latin2", "latin5", "latin7"), rb"\xa0"
    ),
    **dict.fromkeys(("cp852", "cp866", "keybcs2"), rb"\xff"),
}


class Unreadable(Exception):
    """Says why a statement cannot be read, as the last words of an error."""


class Tokens:
    """A cursor on a statement's tokens; never reads further than it is asked to.

    `word` is the token in hand as grammar names it: an unquoted word in upper case, or one mark of punctuation. It is
    "" where no keyword can stand: at a quoted name, a string, a number, a word after "." or "@", and the end.
    """

    __slots__ = (
        "_after", "_codec", "_executed", "_gap", "_kind", "_mode", "_part", "_sql", "_start", "_text", "_token",
        "_version", "word",
    )  # fmt: skip

    def __init__(self, sql: bytes, sql_mode: int, charset: str, version: int | None = None) -> None:
        """`charset` is the client's; `version` that of the server that will read it, None for any.

        Raises Unreadable, as every method that steps on does.
        """
        self._version = version
        self._sql = sql
        self._mode = sql_mode
        self._start = self._after = 0
        self._executed = False
        self._kind = self.word = ""
        self.switch(charset)

    def switch(self, charset: str) -> None:
        """Read in another character set, from the token in hand on."""
        if charset not in CODECS:
            raise Unreadable(f"client character set {charset} is not supported")
        self._codec = CODECS[charset]
        self._gap, self._token, self._part = _patterns(
            charset, bool(self._mode & (ANSI_QUOTES | ANSI)), not self._mode & NO_BACKSLASH_ESCAPES
        )
        self._after = self._start
        self._kind = ""
        self.advance()

    @property
    def at_end(self) -> bool:
        return self._kind == "end"

    @property
    def start(self) -> int:
        """Tell where the token in hand begins."""
        return self._start

    @property
    def end(self) -> int:
        """Tell where the token in hand ends."""
        return self._after

    def advance(self) -> None:
        """Step to the next token."""
        self._require_read_for_certain()
        before, after = self.word, self._after
        kind, start, end = self._next()
        # a blank behind "@" is an empty host, and a keyword may follow it
        glued = before == "." or (before == "@" and start == after)
        self._kind, self._start, self._after, self._text = kind, start, end, self._sql[start:end]
        self.word = self._text.upper().decode("latin-1") if kind == "mark" or (kind == "word" and not glued) else ""

    def _next(self) -> tuple[str, int, int]:
        """Kind, start and end of the next token."""
        end = self._after
        # directly behind one of these, a point parts names, and what begins with a digit is one
        in_name = self._kind == "word" or self.word in (".", "@")
        while True:
            gap = self._gap.match(self._sql, end)
            start = gap.end() if gap else end
            pattern = self._part if in_name and start == self._after else self._token
            token = pattern.match(self._sql, start)
            if token is None:
                return "unclosed", start, start
            kind, end = str(token.lastgroup), token.end()
            if kind == "open":
                self._require_read(token[0][3:])
                self._executed = True
            elif kind != "close":
                return kind, start, end
            elif self._executed:
                self._executed = False
            else:
                return "mark", start, end - 1  # a multiplication sign; the slash begins the next token

    def _require_read(self, version: bytes) -> None:
        """Refuse a part that the server will take for a comment: what is behind it would mean something else there."""
        if version and self._version is not None and int(version) > self._version:
            raise Unreadable(f"a part of it is for MySQL {int(version)} and later, and not read by {self._version}")

    def _require_read_for_certain(self) -> None:
        # not as soon as it is seen: in another character set it may be whole
        if self._kind == "unclosed":
            raise Unreadable("a quote or a comment is not closed")
        if self._kind == "doubt":
            raise Unreadable(f"what {self._text.decode('latin-1')} means depends on what stands around it")

    def take(self, *words: str) -> bool:
        """Step over the token in hand if it is one of these."""
        if self.word not in words:
            return False
        self.advance()
        return True

    def expect(self, word: str) -> None:
        if not self.take(word):
            raise Unreadable(f"{word} is missing")

    def expect_end(self) -> None:
        """Require that nothing but one semicolon follows."""
        self.take(";")
        if not self.at_end:
            raise Unreadable("more follows than was expected")

    def skip_text(self) -> None:
        """Step over a name or a string."""
        if self._kind not in ("word", "name", "string"):
            raise Unreadable("a name is missing")
        self.advance()

    def name(self) -> str:
        """Step over a name, quoted or not. A character that cannot be known becomes U+FFFD.

        MySQL keeps names in utf8mb3, and a question mark for what that does not have.
        """
        self._require_read_for_certain()
        if self._kind not in ("word", "name"):
            raise Unreadable("a name is missing")
        if self._kind == "word":
            name = self._text.decode(self._codec, "replace")
        else:
            quote = chr(self._text[0])
            name = self._text[1:-1].decode(self._codec, "replace").replace(quote * 2, quote)
        self.advance()
        return _BEYOND_UTF8MB3.sub("?", name)


#: numbers end where they must, whatever follows: "1e1SELECT" and "1.SELECT" are two tokens
_NUMBER = rb"""
        (?P<number>  \d+\.\d*(?:[eE][+-]?\d+)? | \.\d+(?:[eE][+-]?\d+)? | \d+[eE][+-]?\d+ )
      | """
#: an exponent without digits swallows what follows it; and which bytes beyond ASCII make a comment of two dashes before
#: them differs from one character set to the other
_DOUBT = rb"""
        (?P<doubt>   (?:\d+\.\d*|\.\d+)[eE](?![+-]?\d) | --(?=[\x7f-\xff]) )
      | """


@cache
def _patterns(
    charset: str, ansi_quotes: bool, backslash: bool
) -> tuple[re.Pattern[bytes], re.Pattern[bytes], re.Pattern[bytes]]:
    """What separates tokens, one token, and one inside of a name. Source: MySQL's sql_lex.cc, lex_one_token."""
    wide = _WIDE.get(charset)
    blank = rb"\x09-\x0d\x20" + _BLANK.get(charset, b"")
    gap = (
        rb"(?:[%s]+"
        rb"|\#[^\n]*"
        rb"|--(?=[\x00-\x20]|\Z)[^\n]*"  # two dashes alone are two minus signs
        rb"|/\*(?!!).*?\*/"
        rb")*" % blank
    )
    name = [_quoted(b"`", False, wide)]
    string = [_quoted(b"'", backslash, wide)]
    if ansi_quotes:
        name.append(_quoted(b'"', False, wide))
    else:
        string.append(_quoted(b'"', backslash, wide))
    letter = rb"(?![%s])[\w$\x80-\xff]" % blank
    token = rb"""
        (?P<word>    (?:%s)+ )
      | (?P<name>    %s )
      | (?P<string>  %s )
      | (?P<open>    /\*! (?: \d{6}(?=[%s]) | \d{5} )? )
      | (?P<close>   \*/ )
      | (?P<mark>    (?!/\*) [^`'"] )
      | (?P<end>     \Z )
    """ % (_either(wide, letter), b"|".join(name), b"|".join(string), blank)
    flags = re.DOTALL | re.VERBOSE
    return re.compile(gap, re.DOTALL), re.compile(_DOUBT + _NUMBER + token, flags), re.compile(token, flags)


def _quoted(quote: bytes, backslash: bool, wide: bytes | None) -> bytes:
    """Text in quotes, where a doubled quote stands for one. Every byte can be taken in one way only."""
    special = [quote + quote]
    ordinary = rb"^%s" % quote
    if backslash:
        special.append(rb"\\.")  # whatever byte follows, the first half of a wide character too
        ordinary += rb"\\"
    if wide is not None:
        special += [wide, rb"(?!%s)[\x80-\xff]" % wide]
        ordinary += rb"\x80-\xff"
    return rb"%(q)s[%(o)s]*(?:(?:%(s)s)[%(o)s]*)*%(q)s(?!%(q)s)" % {
        b"q": quote,
        b"o": ordinary,
        b"s": b"|".join(special),
    }


def _either(wide: bytes | None, single: bytes) -> bytes:
    return single if wide is None else wide + b"|" + single
