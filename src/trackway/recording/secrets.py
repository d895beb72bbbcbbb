"""The known secrets: what keys and tokens of well-known services look like.

A rule is tried only where one of its anchors stands in the text, in any case, which a plain search finds at memory
speed: a text without secrets costs a few scans and no regular expression. Where a pattern has a group, the group is the
secret. Each takes time in proportion to the text, whatever is in it: the text is whatever a tool printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple


class Rule(NamedTuple):
    """A named pattern; ``anchors`` are texts of which one is in everything the pattern matches, none where unknown."""

    name: str
    pattern: re.Pattern[str] | str
    anchors: tuple[str, ...] = ()

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where secrets stand in the text."""
        if self.anchors:
            lowered = text.lower()
            if not any(each in lowered for each in self.anchors):
                return
        pattern = _compiled(self.pattern)
        for found in pattern.finditer(text):
            start, stop = found.span(1 if pattern.groups and found.group(1) is not None else 0)
            if start < stop:
                yield start, stop


@cache
def _compiled(pattern: re.Pattern[str] | str) -> re.Pattern[str]:
    """When it is first needed: whoever only lists episodes need not wait for it."""
    return re.compile(pattern)


class PrivateKeys(NamedTuple):
    """Private keys between their two lines, or as far as they go where the second is cut off."""

    name: str = "private-key"

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Each key, from its first line on. No pattern with both lines in it takes linear time on many first ones."""
        at = 0 if "PRIVATE KEY" in text else len(text)
        while (begin := _compiled(_BEGIN).search(text, at)) is not None:
            body = _compiled(_BODY).match(text, begin.end())
            stop = begin.end() if body is None else body.end()
            end = _compiled(_END).match(text, stop)
            at = stop if end is None else end.end()
            yield begin.start(), at


_BEGIN: Final = r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY(?: BLOCK)?-----"
_BODY: Final = r"(?:[A-Za-z0-9+/=\s\\:,]|-(?!----))*+"
_END: Final = r"-----END [A-Z ]{0,20}PRIVATE KEY(?: BLOCK)?-----"


def _rule(name: str, pattern: str, *anchors: str) -> Rule:
    return Rule(name, pattern, anchors)


_ESCAPED: Final = r"(?<=\\[nrtbf])|(?<=\\u[0-9a-fA-F]{4})"
_EDGE: Final = rf"(?:(?<![A-Za-z0-9])|{_ESCAPED})"
"""Before what is short or ordinary enough to end a word: ``risk-…`` is no ``sk-…``. An escape in JSON ends a word."""
_START: Final = rf"(?:(?<![A-Za-z0-9_-])|{_ESCAPED})"
"""The same before what goes on over dashes: one start for each stretch, or many would each be followed to its end."""

KNOWN: Final = (
    _rule("anthropic", r"sk-ant-[A-Za-z0-9_-]{20,}+", "sk-ant-"),
    _rule("openai", _EDGE + r"sk-(?!ant-)[A-Za-z0-9_-]{20,}+", "sk-"),
    _rule("aws-key", r"(?<![A-Z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?![A-Z0-9])", "akia", "asia", "abia", "acca"),
    _rule(
        "aws-secret", r"(?i:secret_?access_?key)[\"'\\\s:=]{1,12}([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])",
        "access_key", "accesskey",
    ),
    _rule("github", r"(?:gh[pousr]_[A-Za-z0-9]{36,}+|github_pat_[A-Za-z0-9_]{22,}+)", "gh", "github_pat_"),
    _rule("gitlab", _EDGE + r"gl(?:pat|ptt|dt|rt|cbt|agent|oas)-[A-Za-z0-9_-]{20,}+", "gl"),
    _rule("google", r"(?:AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}+|GOCSPX-[A-Za-z0-9_-]{28})",
          "aiza", "ya29.", "gocspx-"),
    _rule("slack", r"xox[abeoprs]-[A-Za-z0-9-]{10,}+|hooks\.slack\.com/services/([A-Za-z0-9/]{40,}+)",
          "xox", "hooks.slack"),
    _rule("stripe", r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}+", "k_live_", "k_test_"),
    _rule("huggingface", _EDGE + r"hf_[A-Za-z0-9]{30,}+", "hf_"),
    _rule("npm", _EDGE + r"npm_[A-Za-z0-9]{36}", "npm_"),
    _rule("pypi", _EDGE + r"pypi-[A-Za-z0-9_-]{50,}+", "pypi-"),
    _rule("sendgrid", _START + r"SG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+", "sg."),
    _rule("jwt", _START + r"eyJ[A-Za-z0-9_-]{10,}+\.eyJ[A-Za-z0-9_-]{10,}+\.[A-Za-z0-9_-]{10,}+", "eyj"),
    PrivateKeys(),
    _rule("url-password", r"[A-Za-z][A-Za-z0-9+.-]{0,20}://[^/\s:@\"'<>]{0,100}:([^/\s@\"'<>]{1,200})@", "://"),
    _rule("bearer", r"(?i:\bbearer)(?:\s|\\[nrt]){1,8}([A-Za-z0-9._~+/=-]{16,}+)", "bearer"),
    _rule("basic-auth", r"(?i:authorization[\"'\\]{0,2}\s{0,3}[:=]\s{0,3}[\"'\\]{0,2}basic)\s{1,8}"
          r"([A-Za-z0-9+/=]{8,}+)", "basic"),
)  # fmt: skip
"""Ours, in the order in which the first of two that overlap gives the name."""
