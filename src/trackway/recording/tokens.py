"""Keyed tokens: what was hidden stands as a text that is equal for equal secrets and says nothing without the key.

    [redacted:RULE:BODY]     BODY = base64url(tag ‖ secret ⊕ stream)
                             tag = BLAKE3 keyed by k1, of RULE and the secret, 16 bytes
                             stream = BLAKE3 keyed by k2, of the tag, as long as the secret

This is the SIV construction (deterministic authenticated encryption) with keyed BLAKE3 in both places: no nonce to
lose, and no table of secrets to keep, since the token itself holds the secret for whoever holds the key. Its length
shows. A token is ASCII without quotes and backslashes, so it stands in JSON, in shells and in file names as it is.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from blake3 import blake3

KEY_BYTES: Final = 32
_TAG: Final = 16
_TAG_KEY: Final = "trackway redact 1 tag"
_STREAM_KEY: Final = "trackway redact 1 stream"
_NOT_IN_NAME: Final = re.compile(r"[^a-z0-9_.-]+")
VALUE: Final = ".json"
"""Ends the name of a rule where a whole value was hidden that is no text: the token holds its JSON."""
TOKEN: Final = re.compile(r"\[redacted:([a-z0-9_.-]+):([A-Za-z0-9_-]{22,})\]")


def rule_name(name: str) -> str:
    """A name as it may stand in a token.

    >>> rule_name("Customer number")
    'customer-number'
    """
    return _NOT_IN_NAME.sub("-", name.lower()).strip("-") or "rule"


class Tokens:
    """Hides and lifts with one key."""

    def __init__(self, key: bytes) -> None:
        self._tag_key = blake3(key, derive_key_context=_TAG_KEY).digest()
        self._stream_key = blake3(key, derive_key_context=_STREAM_KEY).digest()

    def hide(self, secret: str, rule: str) -> str:
        """The token of a secret.

        >>> token = Tokens(bytes(32)).hide("hunter2", "password")
        >>> token == Tokens(bytes(32)).hide("hunter2", "password"), Tokens(bytes(32)).lift(token)
        (True, 'hunter2')
        """
        body = secret.encode("utf-8", "surrogatepass")
        tag = self._tag(body, rule)
        return f"[redacted:{rule}:{base64.urlsafe_b64encode(tag + self._mix(body, tag)).decode().rstrip('=')}]"

    def lift(self, text: str) -> str:
        """The text with every token of this key replaced by what it hides; others stay as they are."""
        while "[redacted:" in text:  # a token may be inside what another one hides
            before, text = text, TOKEN.sub(self._lifted, text)
            if text == before:
                break
        return text

    def _lifted(self, found: re.Match[str]) -> str:
        rule, packed = found.groups()
        try:
            whole = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
            tag, body = whole[:_TAG], self._mix(whole[_TAG:], whole[:_TAG])
            return body.decode("utf-8", "surrogatepass") if self._tag(body, rule) == tag else found[0]
        except (binascii.Error, UnicodeDecodeError):
            return found[0]

    def _tag(self, body: bytes, rule: str) -> bytes:
        return bytes(blake3(rule.encode() + b"\0" + body, key=self._tag_key).digest(_TAG))

    def _mix(self, body: bytes, tag: bytes) -> bytes:
        stream = blake3(tag, key=self._stream_key).digest(len(body)) if body else b""
        return (int.from_bytes(body, "big") ^ int.from_bytes(stream, "big")).to_bytes(len(body), "big")
