"""What is derived from episodes and kept beside the store, brought up to date: the search index, and the counts.

Both can be made at any time, and are when they are asked for. After an import somebody waits anyway, and two cores have
nothing to do: then searching and counting answer at once the first time, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trackway.cli._progress import Stage
    from trackway.store.live import LiveStore


def catch_up(live: LiveStore) -> None:
    """Bring all of it up to date; what goes wrong with it is said, and does no harm to what was stored."""
    from trackway.cli._print import talk
    from trackway.cli._progress import stages
    from trackway.errors import TrackwayError

    for each in (_count, _index):
        try:
            with stages() as stage:
                each(live, stage)
        except (TrackwayError, OSError) as error:
            talk(f"what is derived from episodes is behind, and will be caught up with when it is needed: {error}")


def _index(live: LiveStore, stage: Stage) -> None:
    from trackway.search.catching_up import catch_up

    catch_up(live, progress=stage)


def _count(live: LiveStore, stage: Stage) -> None:
    from trackway.cli._digests import catch_up

    catch_up(live, progress=stage)
