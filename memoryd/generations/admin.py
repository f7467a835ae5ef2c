"""What may be done to the registry: begin a generation, let another one answer, give one up."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from memoryd.domain.generations import Generation, GenerationState, Progress, generation_id
from memoryd.domain.queries import ModelInfo
from memoryd.errors import ConflictError, InvalidInputError, NotFoundError, PreconditionFailedError
from memoryd.ports import Generations, Registry


@dataclass(frozen=True, slots=True)
class GenerationStatus:
    """A generation as an operator sees it. `progress` is None while nothing was reported."""

    generation: Generation
    current: bool
    progress: Progress | None


async def begin(registry: Generations, model: ModelInfo, *, origin: str = "") -> Generation:
    """Have a generation for a model; the first of all is the current one at once.

    One that is being dropped is given as it is: it can be begun again when it is gone.
    """
    name = generation_id(model)
    while True:
        known = await registry.read()
        record = known.get(name)
        try:
            if record is None:
                record = await registry.put(Generation(name, model, time.time(), origin=origin))
            elif record.state is not GenerationState.DROPPING and (record.retired or origin not in {"", record.origin}):
                record = await registry.put(replace(record, retired=None, origin=origin or record.origin))
            if not known.current.id and record.state is not GenerationState.DROPPING:
                await registry.move(name, wanted=name, expected=known.current)
        except ConflictError:
            continue  # another process does the same
        return record


async def statuses(registry: Generations) -> list[GenerationStatus]:
    """List all, oldest first."""
    known = await registry.read()
    return [
        GenerationStatus(each, each.id == known.current.id, await registry.progress(each.id))
        for each in known.generations
    ]


async def use(registry: Generations, name: str) -> Generation:
    """Let another generation answer: forth, or back again.

    Args:
        registry: the records.
        name: its id, or the beginning of it.

    Raises NotFoundError, InvalidInputError (several begin so), PreconditionFailedError (it is not complete yet, or is
    being dropped), ConflictError.
    """
    known = await registry.read()
    chosen = find(known, name)
    if chosen.state is not GenerationState.READY:
        raise PreconditionFailedError(
            f"generation {chosen.id} is {chosen.state}, and only one that is ready can answer: "
            "`memoryd generations list` shows how far it is"
        )
    if chosen.id != known.current.id:
        await registry.move(chosen.id, wanted=known.current.wanted, expected=known.current)
    return chosen


async def drop(registry: Generations, name: str) -> Generation:
    """Give a generation up; the process that indexes removes its parts, then its record.

    Raises as `use`, and PreconditionFailedError for the current one and the one that is wanted next.
    """
    known = await registry.read()
    chosen = find(known, name)
    if chosen.id == known.current.id:
        raise PreconditionFailedError(
            f"generation {chosen.id} answers searches: let another one answer first, with `memoryd generations use`"
        )
    if chosen.retired is None and chosen.state is not GenerationState.DROPPING:
        raise PreconditionFailedError(
            f"generation {chosen.id} is the one of the configured model and would be begun again: "
            "configure another model first"
        )
    return await give_up(registry, chosen)


async def give_up(registry: Generations, generation: Generation) -> Generation:
    """Mark a generation as given up. Raises ConflictError."""
    if generation.state is GenerationState.DROPPING:
        return generation
    return await registry.put(replace(generation, state=GenerationState.DROPPING, retired=time.time()))


def find(known: Registry, name: str) -> Generation:
    """Find a generation by its id or the beginning of it. Raises NotFoundError, InvalidInputError."""
    found = [each for each in known.generations if name and each.id.startswith(name)]
    if not found:
        there = ", ".join(each.id for each in known.generations) or "none"
        raise NotFoundError(f"there is no generation {name!r}; there are: {there}")
    if len(found) > 1:
        raise InvalidInputError(f"several generations begin with {name!r}: give more of the id")
    return found[0]
