"""The store's layout, as a list of steps that is only ever added to; each is one transaction with its number.

Opening applies what is missing. A store with a higher number than this version knows is refused, never guessed at.
Text that people search is kept in TEXT columns for that purpose only; what is read back comes from frames.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from trackway.errors import NotAStore, StoreDamaged, StoreTooNew
from trackway.schema.version import STORE
from trackway.store.sums import with_sum

APPLICATION_ID: Final = 0x54524B57  # "TRKW"

_M001: Final = """
CREATE TABLE writers (
    id          INTEGER PRIMARY KEY,
    writer      TEXT NOT NULL UNIQUE,
    about       TEXT NOT NULL,
    activation  INTEGER NOT NULL,
    "offset"    INTEGER NOT NULL
);
CREATE TABLE episodes (
    id          INTEGER PRIMARY KEY,
    uuid        BLOB NOT NULL UNIQUE,
    next_seq    INTEGER NOT NULL,
    tail_bytes  INTEGER NOT NULL,
    tail_events INTEGER NOT NULL,
    started_at  INTEGER,
    ended_at    INTEGER,
    task        TEXT,
    variant     TEXT,
    agent       TEXT,
    model       TEXT,
    outcome     TEXT,
    score       REAL,
    n_events    INTEGER NOT NULL,
    n_steps     INTEGER NOT NULL,
    summary     BLOB NOT NULL
);
CREATE INDEX episodes_started ON episodes (started_at);
CREATE TABLE words (id INTEGER PRIMARY KEY, word TEXT NOT NULL UNIQUE);
CREATE TABLE episode_tools (tool INTEGER NOT NULL, episode INTEGER NOT NULL, PRIMARY KEY (tool, episode)) WITHOUT ROWID;
CREATE TABLE episode_tags (tag INTEGER NOT NULL, episode INTEGER NOT NULL, PRIMARY KEY (tag, episode)) WITHOUT ROWID;
CREATE TABLE frames (
    id          INTEGER PRIMARY KEY,
    episode     INTEGER NOT NULL,
    first_seq   INTEGER NOT NULL,
    n           INTEGER NOT NULL,
    flags       INTEGER NOT NULL,
    "schema"    INTEGER NOT NULL,
    checksum    INTEGER NOT NULL,
    body        BLOB NOT NULL
);
CREATE UNIQUE INDEX frames_of_episode ON frames (episode, first_seq);
CREATE TABLE tail (
    episode     INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    flags       INTEGER NOT NULL,
    "schema"    INTEGER NOT NULL,
    checksum    INTEGER NOT NULL,
    body        BLOB NOT NULL,
    PRIMARY KEY (episode, seq)
) WITHOUT ROWID;
CREATE TABLE blobs (
    id          INTEGER PRIMARY KEY,
    hash        BLOB NOT NULL UNIQUE,
    size        INTEGER NOT NULL,
    checksum    INTEGER,
    body        BLOB
);
CREATE TABLE chunks (
    blob        INTEGER NOT NULL,
    i           INTEGER NOT NULL,
    checksum    INTEGER NOT NULL,
    body        BLOB NOT NULL
);
CREATE UNIQUE INDEX chunks_of_blob ON chunks (blob, i);
CREATE TABLE blob_refs (blob INTEGER NOT NULL, episode INTEGER NOT NULL, PRIMARY KEY (blob, episode)) WITHOUT ROWID;
"""

# 2: episodes can be dropped. Their ids stay, so that an event that comes late is not taken for a new episode; what
# belongs to one episode is found without looking at all others.
_M002: Final = """
CREATE TABLE dropped (uuid BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE INDEX blob_refs_of_episode ON blob_refs (episode);
CREATE INDEX tools_of_episode ON episode_tools (episode);
CREATE INDEX tags_of_episode ON episode_tags (episode);
"""

# 3: a flipped bit is never taken for truth. Positions and summaries carry a checksum, and those of frames and tail
# rows are seeded with their place from now on (frames.BOUND); how many of a writer's events came is counted.
# A process of an older release that has the store open does not look at its number again, and would take what it cannot
# read for damage: the column it looks for first is gone, so it waits, with everything in its journal.
_M003: Final = """
ALTER TABLE writers RENAME COLUMN activation TO segment;
ALTER TABLE writers ADD COLUMN events INTEGER;
ALTER TABLE writers ADD COLUMN missing INTEGER;
ALTER TABLE writers ADD COLUMN checksum INTEGER;
UPDATE episodes SET summary = with_sum(summary) WHERE typeof(summary) = 'blob';
"""

# 4: files that were imported are kept as they were, in parts that files which are copies of one another share. A part
# belongs to no event: what a file says is in the events, and two copies of it say it once.
_M004: Final = """
CREATE TABLE originals (id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, about BLOB NOT NULL);
CREATE TABLE parts (
    id          INTEGER PRIMARY KEY,
    hash        BLOB NOT NULL UNIQUE,
    size        INTEGER NOT NULL,
    checksum    INTEGER NOT NULL,
    body        BLOB NOT NULL
);
CREATE TABLE original_parts (
    original    INTEGER NOT NULL,
    start       INTEGER NOT NULL,
    part        INTEGER NOT NULL,
    PRIMARY KEY (original, start)
) WITHOUT ROWID;
CREATE INDEX originals_of_part ON original_parts (part);
CREATE TABLE original_episodes (
    original    INTEGER NOT NULL,
    episode     INTEGER NOT NULL,
    start       INTEGER NOT NULL,
    stop        INTEGER NOT NULL,
    PRIMARY KEY (original, episode)
) WITHOUT ROWID;
CREATE INDEX originals_of_episode ON original_episodes (episode);
"""

MIGRATIONS: Final = (_M001, _M002, _M003, _M004)


_IDENTITY: Final = """
    SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master), (SELECT CASE
        WHEN EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'originals') THEN 4
        WHEN EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'writers' AND instr(sql, 'segment')) THEN 3
        WHEN EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'dropped') THEN 2
        ELSE EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'episodes') END)
    FROM pragma_application_id, pragma_user_version"""
"""In one statement, and so of one moment: the store may be made by somebody else while it is looked at. The last is the
layout that the tables themselves show: a flipped bit in the number would have us read them wrongly."""

_TOLD_APART: Final = 4


def check_version(connection: sqlite3.Connection, path: Path) -> int:
    """The store's layout number, 0 for an empty file; raises where it is not ours or not ours yet."""
    application, version, tables, layout = connection.execute(_IDENTITY).fetchone()
    if application != APPLICATION_ID and tables:
        raise NotAStore(f"{path} is a SQLite file of another program", hint="name another file with --store", path=path)
    _check_number(version, path)
    if application == APPLICATION_ID and min(version, _TOLD_APART) != layout:
        said = f"store {path} is damaged: it says that it is format {version}, its tables are those of format {layout}"
        hint = f"copy the file away, then: sqlite3 {path} 'PRAGMA user_version={layout}', or put a backup in its place"
        raise StoreDamaged(said, hint=hint, path=path)
    return int(version)


def check_layout(connection: sqlite3.Connection, path: Path) -> None:
    """Raise where the layout is newer than we know: of a store that was not, when it was opened."""
    _check_number(connection.execute("PRAGMA user_version").fetchone()[0], path)


def _check_number(version: int, path: Path) -> None:
    if version > STORE:
        raise StoreTooNew(
            f"store {path} is format {version}, this trackway reads up to {STORE}",
            hint="update trackway: pip install -U trackway",
            path=path,
        )


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Apply the steps that are missing, each in a transaction of its own with the number it leads to."""
    connection.create_function("with_sum", 1, with_sum, deterministic=True)
    for number, script in enumerate(MIGRATIONS[version:], start=version + 1):
        connection.executescript(
            f"BEGIN IMMEDIATE;{script}PRAGMA application_id={APPLICATION_ID};PRAGMA user_version={number};COMMIT;"
        )
