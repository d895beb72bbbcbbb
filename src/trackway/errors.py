"""Every exception trackway raises on purpose.

    TrackwayError
    ├── Misuse                    the caller asked for something that cannot be
    │   ├── EpisodeClosed         an event after the end
    │   ├── RecorderClosed        an event after close()
    │   ├── UnknownOutcome        an outcome nobody defined
    │   ├── BadSetting            a value of a setting or argument that is none of the known ones
    │   └── QueryRefused          a search that cannot be made sense of, and where
    ├── NotFound
    │   ├── EpisodeNotFound       no episode answers to that id
    │   ├── AmbiguousEpisode      more than one does
    │   └── BlobNotFound          a hash nothing is stored under
    ├── StoreTrouble              the store cannot do what was asked
    │   ├── StoreTooNew           written by a newer trackway
    │   ├── StoreDamaged          bytes do not match their checksum
    │   ├── StoreUnavailable      missing, read-only, locked, full
    │   ├── JournalRemoved        its files were removed under a living process, and cannot be put back
    │   └── NotAStore             the file is something else
    ├── SearchUnavailable         the full-text index can be neither read nor made anew
    ├── PackRefused               a file that is no whole pack, or that this store cannot take
    └── EventRefused              an event that cannot be encoded, and why

Each says what failed, on which thing, and carries a ``hint``: what to do next. Operands are kept as attributes.
Recording never lets one of these reach the agent, but for ``Misuse``: see ``trackway.recording``.
"""

from __future__ import annotations


class TrackwayError(Exception):
    """The base of all of them; ``str()`` is the message with its hint."""

    def __init__(self, message: str, *, hint: str = "", **operands: object) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.__dict__.update(operands)

    def __str__(self) -> str:
        return f"{self.message} (hint: {self.hint})" if self.hint else self.message


class Misuse(TrackwayError):
    """The caller asked for something that cannot be; a bug in the calling code."""


class EpisodeClosed(Misuse):
    """The episode has ended; only labels may follow."""


class RecorderClosed(Misuse):
    """The recorder was closed; nothing can be recorded through it."""


class UnknownOutcome(Misuse):
    """An outcome is one of success, partial, failure, abandoned."""


class BadSetting(Misuse):
    """A setting or argument has a value that is none of the known ones."""


class QueryRefused(Misuse):
    """A search that cannot be made sense of; ``position`` is the character it begins to be wrong at, from 1."""


class NotFound(TrackwayError):
    """What was asked for is not there."""


class EpisodeNotFound(NotFound):
    """No episode answers to that id."""


class AmbiguousEpisode(NotFound):
    """More than one episode answers to that short id."""


class BlobNotFound(NotFound):
    """Nothing is stored under that hash."""


class StoreTrouble(TrackwayError):
    """The store cannot do what was asked."""


class StoreTooNew(StoreTrouble):
    """The store was written by a newer trackway than this one."""


class StoreDamaged(StoreTrouble):
    """Stored bytes do not match their checksum."""


class StoreUnavailable(StoreTrouble):
    """The store is missing, locked, read-only or full."""


class JournalRemoved(StoreTrouble):
    """A journal's files were removed under the process that writes it, and cannot be put back."""


class NotAStore(StoreTrouble):
    """The file exists and is something else."""


class SearchUnavailable(TrackwayError):
    """The full-text index can be neither read nor made anew; nothing is lost, it is derived. ``why`` is the reason."""

    why: str


class PackRefused(TrackwayError):
    """A file that is no whole pack, or that this store cannot take; nothing was changed."""


class EventRefused(TrackwayError):
    """An event that cannot be encoded, and why."""


class NothingToImport(NotFound):
    """No file to import was found, or nobody agreed to read those that were."""


class NotImported(NotFound):
    """The episode came from no file."""


class FileRefused(TrackwayError):
    """A file that cannot be imported, and why; nothing of it was."""
