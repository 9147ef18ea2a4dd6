"""The text of a pattern, read into a tree: `A (B | C)+ D{2,3}?`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from headwater.errors import FlowError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

DEEPEST = 50
"""How deep groups may be nested."""


@dataclass(frozen=True, slots=True)
class Variable:
    """One row that satisfies the variable's condition."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Series:
    """One part after the other."""

    parts: tuple[Tree, ...]

    def __str__(self) -> str:
        return " ".join(f"({p})" if isinstance(p, Choice) else str(p) for p in self.parts)


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several options; an earlier one is preferred."""

    options: tuple[Tree, ...]

    def __str__(self) -> str:
        return " | ".join(map(str, self.options))


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part several times: as often as possible, or as seldom where it is not greedy."""

    part: Tree
    least: int
    most: int | None
    greedy: bool = True

    def __str__(self) -> str:
        part = str(self.part) if isinstance(self.part, Variable) else f"({self.part})"
        return part + self.quantifier

    @property
    def quantifier(self) -> str:
        """The quantifier as it is written."""
        short = {(0, 1): "?", (0, None): "*", (1, None): "+"}.get((self.least, self.most))
        if short is None:
            most = "" if self.most is None else self.most
            short = f"{{{most}}}" if self.least == self.most else f"{{{self.least},{most}}}"
        return short if self.greedy else short + "?"


Tree: TypeAlias = Variable | Series | Choice | Repeat


def parse(text: str, defined: Collection[str] = ()) -> Tree:
    """The tree of a pattern; `defined` are the variables that have a condition.

    >>> parse("A ( B|C )+? D{,3}")
    Series(parts=(Variable(name='A'), Repeat(...), Repeat(...)))
    >>> print(parse("A ( B|C )+? D{,3}"))
    A (B | C)+? D{0,3}
    """
    if not isinstance(text, str):
        raise FlowError(f"match: the pattern is a text such as 'A B+', not {type(text).__name__}")
    tree = _Reader(text).whole()
    if nullable(tree):
        raise FlowError(
            f"match: pattern {text!r} can match no rows at all; "
            "at least one variable must be needed, as in A+ instead of A*"
        )
    known = variables(tree)
    for name in defined:
        if name not in known:
            raise FlowError(
                f"match: define has {name!r}, which pattern {text!r} lacks; "
                f"its variables are {', '.join(known)}"
            )
    return tree


def nullable(tree: Tree) -> bool:
    """Whether the tree can match no rows."""
    match tree:
        case Variable():
            return False
        case Series(parts=parts):
            return all(map(nullable, parts))
        case Choice(options=options):
            return any(map(nullable, options))
        case Repeat(part=part, least=least):
            return least == 0 or nullable(part)


def variables(tree: Tree) -> tuple[str, ...]:
    """The variables, each once, in the order in which they are written."""
    return tuple(dict.fromkeys(_names(tree)))


def _names(tree: Tree) -> Iterator[str]:
    match tree:
        case Variable(name=name):
            yield name
        case Series(parts=parts) | Choice(options=parts):
            for part in parts:
                yield from _names(part)
        case Repeat(part=part):
            yield from _names(part)


_TOKEN = re.compile(r"\s*(?:(?P<name>[^\W\d]\w*)|(?P<number>\d+)|(?P<sign>\{-|-\}|\S))")
_QUANTIFIERS = {"?": (0, 1), "*": (0, None), "+": (1, None)}
_UNSUPPORTED = {
    "^": "the anchor ^ is not supported: a stream has no first row to wait for",
    "$": "the anchor $ is not supported: a stream has no last row",
    "{-": "exclusions {- … -} are not supported",
    "-}": "exclusions {- … -} are not supported",
}


@dataclass(slots=True)
class _Reader:
    """A descent through the tokens of a pattern."""

    text: str
    tokens: list[tuple[str, int]] = field(default_factory=list)
    at: int = 0
    depth: int = 0

    def __post_init__(self) -> None:
        for found in _TOKEN.finditer(self.text):
            token = found.group(found.lastgroup or 0)
            self.tokens.append((token, found.end() - len(token) + 1))
        for token, place in self.tokens:
            if token in _UNSUPPORTED:
                self._refuse(_UNSUPPORTED[token], place)
            if token.upper() == "PERMUTE":
                self._refuse(
                    "PERMUTE is not supported; write the orders as options (A B | B A)", place
                )

    def whole(self) -> Tree:
        if not self.tokens:
            raise FlowError("match: the pattern is empty; name at least one variable, as in 'A B+'")
        tree = self._choice()
        if self._next == ")":
            self._refuse("a ) without its (")
        return tree

    @property
    def _next(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def _take(self) -> str:
        token = self._next
        self.at += 1
        return token

    def _choice(self) -> Tree:
        options = [self._series()]
        while self._next == "|":
            self._take()
            options.append(self._series())
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _series(self) -> Tree:
        parts: list[Tree] = []
        while self._next not in ("", "|", ")"):
            parts.append(self._repeated())
        if not parts:
            self._refuse("a variable or a group is missing")
        return parts[0] if len(parts) == 1 else Series(tuple(parts))

    def _repeated(self) -> Tree:
        part = self._single()
        place = self._place
        if self._next in _QUANTIFIERS:
            least, most = _QUANTIFIERS[self._take()]
        elif self._next == "{":
            least, most = self._braces(place)
        else:
            return part
        greedy = self._next != "?"
        if not greedy:
            self._take()
        if self._next in _QUANTIFIERS or self._next == "{":
            self._refuse("a quantifier behind a quantifier; put the inner one into ( )")
        return Repeat(part, least, most, greedy)

    def _single(self) -> Tree:
        token, place = self._next, self._place
        if token == "(":
            self.depth += 1
            if self.depth > DEEPEST:
                self._refuse(f"groups are nested more than {DEEPEST} deep")
            self._take()
            tree = self._choice()
            if self._take() != ")":
                self._refuse("a ( without its )", place)
            self.depth -= 1
            return tree
        if token in _QUANTIFIERS or token == "{":
            self._refuse(f"nothing to repeat before {token}")
        if not token.isidentifier():
            self._refuse(f"{token!r} is no variable")
        return Variable(self._take())

    def _braces(self, place: int) -> tuple[int, int | None]:
        self._take()
        inside = ""
        while self._next not in ("}", ""):
            inside += self._take()
        if self._take() != "}":
            self._refuse("a { without its }", place)
        found = re.fullmatch(r"(\d+)|(\d*),(\d*)", inside)
        if found is None or inside == ",":
            self._refuse(
                f"{{{inside}}} is no quantifier: write {{n}}, {{n,}}, {{,m}} or {{n,m}}", place
            )
        least = int(found[1] or found[2] or 0)
        most = int(found[1]) if found[1] else int(found[3]) if found[3] else None
        if most == 0:
            self._refuse(f"{{{inside}}} matches no rows; leave the part out", place)
        if most is not None and most < least:
            self._refuse(f"{{{inside}}} has its bounds the wrong way round", place)
        return least, most

    @property
    def _place(self) -> int:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else len(self.text) + 1

    def _refuse(self, why: str, place: int | None = None) -> NoReturn:
        where = self._place if place is None else place
        raise FlowError(f"match: pattern {self.text!r}: {why}, at character {where}")
