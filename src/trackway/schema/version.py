"""The three numbers that say how bytes are to be read, and the rule for raising each.

``SCHEMA`` stands in every journal record and every frame. Raise it when a kind or a field is added to an event.
    An older trackway reads newer numbers through the keeping path: unknown kinds and fields survive read and rewrite.
    A field is never renamed, retyped or given another meaning: add a new one.
``JOURNAL`` stands in every segment header. Raise it when the record layout changes; the reader of the old one stays.
``STORE`` is the store's layout (SQLite ``user_version``). Raise it with a migration; a store with a higher number than
    this is refused, never guessed at.

Every raise brings a golden file under ``tests/golden/`` that is kept, and read by the tests, forever.
"""

SCHEMA = 1
JOURNAL = 1
STORE = 4
