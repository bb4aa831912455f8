"""Whoever opens a file reads sentences: every docstring has a verb, and every name between backticks exists."""

from __future__ import annotations

import ast
import builtins
import re
import string
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("cdc_producer", "cdc_consumer", "shared", "docker")
DOCUMENTS = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/architecture.md",
    "docs/tutorial.md",
    "benchmarks/README.md",
)


def words(text: str) -> list[str]:
    return re.findall(r"[a-z']+", text.lower())


#: what a function does, and with an s what a class or a module does
VERBS = words(
    """
    accept act add alter answer append apply arrive ask become begin belong break bring call carry catch change
    check choose close come commit compare complete compute connect continue copy count cover create cut decide
    decode decompress define delete deliver describe die differ do draw drop emit enable encode end enter escape
    exclude execute exit explain fetch find finish fit follow forget free get give go group grow guard guess hand
    handle hang hash have hear help hide hold identify import insert inspect interrupt invent join judge keep know
    label lack last lead learn leave let limit link list listen live lock log look lose make map mark match mean
    measure meet mend move name narrow need note notice number obtain open order own pace pack pair part pass pause
    pay place plan play prepare print prove publish push put quote raise reach read receive recognise record recover
    refer refuse register release rely remember remove rename repair repeat replace replay report request require
    reset resolve rest result resume retry return run save say scale scan schedule search see select send serve set
    settle share show shut sign skip sleep sort split stand start state stay step stop store stream strip submit sum
    survive take talk tell test tick touch trace translate travel try turn undo unpack update use validate verify
    wait walk want warn watch write yield
    """
)
#: with an s these are things more often, and only count as verbs where a sentence begins
THINGS = frozenset(
    words(
        """
        answers changes copies counts ends groups handles hashes limits links locks maps marks matches measures
        names numbers orders parts places plays quotes records repairs reports results sets starts states sums
        traces uses
        """
    )
)
FINITE = frozenset(
    words(
        """
    became became can cannot could did do does gave had has have is are made may might must said shall should took was
    were will would
    """
    )
)
#: what follows one of these says something of a word, not of the sentence's subject
SUBORDINATE = re.compile(
    r"\b(?:as|because|how|if|since|that|until|what|whatever|when|where|wherever|whether|which|while|who|whom|whose|why)\b",
    re.IGNORECASE,
)


def third_person(verb: str) -> str:
    if verb == "have":
        return "has"
    if verb.endswith(("s", "x", "sh", "ch", "o")):
        return f"{verb}es"
    return f"{verb[:-1]}ies" if verb.endswith("y") and verb[-2] not in "aeiou" else f"{verb}s"


FIRST = frozenset(VERBS) | frozenset(map(third_person, VERBS))
INSIDE = (frozenset(map(third_person, VERBS)) - THINGS) | FINITE


def has_verb(docstring: str) -> bool:
    """Whether its first sentence begins with a verb, or one of its clauses has a finite one."""
    paragraph = " ".join(docstring.split("\n\n")[0].split())
    sentence = re.sub(r"`[^`]*`", "x", re.split(r"(?<=[.!?])\s", paragraph)[0])
    if (words(sentence) or [""])[0] in FIRST:
        return True
    clauses = (words(SUBORDINATE.split(clause)[0]) for clause in re.split(r"[:;,()]", sentence))
    return any(word in INSIDE for clause in clauses for word in clause)


def is_sentence(docstring: str) -> bool:
    first, *rest = docstring.split("\n\n")
    ends = (".", ".)", "!", "?", ":") if rest else (".", ".)", "!", "?")
    begins = docstring[:1].isupper() or docstring[:1] in string.punctuation
    # an introduction to a list ends with a colon
    return begins and (first.strip().endswith(ends) or ":\n" in first) and has_verb(docstring)


class Place(NamedTuple):
    """Something that has a docstring or should have one."""

    path: str
    name: str
    docstring: str | None


@cache
def trees() -> dict[str, ast.Module]:
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text("utf-8")) for path in sorted(paths)}


def places() -> Iterator[Place]:
    """Modules, public classes and public functions; of a method only what it has."""
    for path, tree in trees().items():
        about = ast.get_docstring(tree)
        if tree.body:
            yield Place(path, "", about)
        for node in tree.body:
            if not isinstance(node, (ast.ClassDef, ast.FunctionDef)) or node.name.startswith("_"):
                continue
            docstring = ast.get_docstring(node)
            # a module may explain its classes at its top, as a tree or a table
            if docstring or not (isinstance(node, ast.ClassDef) and re.search(rf"\b{node.name}\b", about or "")):
                yield Place(path, node.name, docstring)
            for method in node.body if isinstance(node, ast.ClassDef) else ():
                if (
                    isinstance(method, ast.FunctionDef)
                    and not method.name.startswith("_")
                    and ast.get_docstring(method)
                ):
                    yield Place(path, f"{node.name}.{method.name}", ast.get_docstring(method))


def test_every_docstring_is_a_sentence_with_a_verb() -> None:
    missing = [f"{place.path} {place.name}" for place in places() if place.docstring is None]
    assert not missing, "docstrings are missing:\n" + "\n".join(missing)
    wrong = [f"{p.path} {p.name}: {p.docstring[:90]}" for p in places() if p.docstring and not is_sentence(p.docstring)]
    assert not wrong, "a docstring begins with a capital, ends with a full stop and has a verb:\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    "docstring",
    [
        "What is open, by table.", "Of file:offset.", "None stands for any word", "none stands for any word.",
        "The folder, and whether it holds a run to resume.", "Those that narrowed the run.", "A table that was altered since.",
        "Row images to SQL statements, in their order; pure.", "64 hexadecimal digits.", "The command cdc-topic.",
    ],
)  # fmt: skip
def test_what_is_no_sentence_is_seen(docstring: str) -> None:
    assert not is_sentence(docstring)


@pytest.mark.parametrize(
    "docstring",
    [
        "Read a position written as file:offset.", "Tells a row's story.", "It stays open: see `close`.",
        "MySQL takes a key that goes and comes for unchanged.",
        "Writes a table:\n\n    a  b", "The lock lives as long as its session.",
    ],
)  # fmt: skip
def test_sentences(docstring: str) -> None:
    assert is_sentence(docstring)


# names


#: of MySQL, Spark and the shell; of the text itself
FOREIGN = frozenset(
    {
        "--help",
        "--rows",
        "--source-data",
        "No key",
        "fluvio4cdc!",
        "mysql_tzinfo_to_sql",
        "mysqldump",
        "pt-table-checksum",
    }
)


@cache
def known() -> frozenset[str]:
    """Every name in the sources and profiles, every file and folder, every option of a command."""
    found = {*FOREIGN, *dir(builtins), *sys.stdlib_module_names}
    sources = [*ROOT.glob("profiles/*.toml"), *ROOT.glob("docker/*.*"), ROOT / "Makefile", ROOT / "pyproject.toml"]
    for path in sources:
        found |= set(re.findall(r"[\w-]+", path.read_text("utf-8")))
    for tree in trees().values():
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                # a key, a column, an option; of SQL its names
                found |= {node.value, *re.findall(r"\w+_\w+", node.value)}
            found |= names_of(node)
    for path in (*(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            found |= names_of(node)
    for top in ROOT.iterdir():
        hidden = top.name.startswith(".") and top.name not in (".ci", ".github")
        for path in (top, *(() if hidden else top.rglob("*"))):
            parts = path.relative_to(ROOT).parts
            found |= {path.stem, *("/".join(parts[start:]) for start in range(len(parts)))}
    return frozenset(found)


def names_of(node: ast.AST) -> set[str]:
    match node:
        case ast.ClassDef() | ast.FunctionDef():
            return {node.name}
        case ast.Name():
            return {node.id}
        case ast.Attribute():
            return {node.attr}
        case ast.arg() | ast.keyword():
            return {node.arg} if node.arg else set()
        case ast.alias():
            return {*node.name.split("."), node.asname or ""}
    return set()


def quoted() -> Iterator[tuple[str, str]]:
    """Where, and what stands between backticks."""
    for place in places():
        for name in re.findall(r"(?<!`)`([^`\n]+)`(?!`)", place.docstring or ""):
            yield f"{place.path} {place.name}", name
    for document in DOCUMENTS:
        text = re.sub(
            r"^(?:```.*?^```|    .*?$)", "", (ROOT / document).read_text("utf-8"), flags=re.MULTILINE | re.DOTALL
        )
        for name in re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text):
            yield document, name


def test_every_name_between_backticks_exists() -> None:
    """A name, a path, or a dotted one of which each part exists; of a statement or command its first word."""
    unknown = [f"{where}: `{name}`" for where, name in quoted() if not exists(name)]
    assert not unknown, "\n".join(unknown)


@pytest.mark.parametrize("name", ["EventWriter", "Draft.enncode", "shared/nothing.py", "--no-such-option", "mark_fram"])
def test_what_does_not_exist_is_seen(name: str) -> None:
    assert not exists(name)


def exists(name: str) -> bool:
    name = name.strip().removesuffix("()")
    if name in known() or name.rstrip("/") in known():
        return True
    if re.fullmatch(r"[A-Z][A-Z_ ,*().]*", name) or re.search(r"[={}<>\"'$]|/\*", name):
        return True  # SQL, or a piece of code, JSON or TOML
    first = re.split(r"[\s(\[]", name)[0]
    if first != name:
        return exists(first)
    if re.search(r"\.(?:py|md|toml|txt|sql|html|jsonl?|css)$", name):
        return False
    return all(part in known() for part in re.split(r"[./:]", name) if part)
