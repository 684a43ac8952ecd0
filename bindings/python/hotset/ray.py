"""Sweeps and experiments over the machines of a Ray cluster: `pip install hotset[ray]`.

A sweep is cut into blocks of its replays. Each is done by a task into a journal of its own; the lines
of all journals together are the journal of the whole sweep, from which the result is then made as
on one machine: the same bytes, whoever did what, however often it was done again.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any, Callable, Union

import ray

from . import _native
from ._commands import call
from ._progress import Progress, told
from ._results import Result
from ._trace import Trace

__all__ = ["experiment", "sweep"]

# A trace as a task gets it: bytes from the object store, or where it lies.
_Given = Union[bytes, str]


def _for_tasks(trace: Any) -> tuple[Any, Any]:
    """A trace for the driver, and for the tasks: a path that all see, an address, or the bytes."""
    if isinstance(trace, Trace):
        return trace, ray.put(_bytes_of(trace))
    text = os.fspath(trace)
    if "://" in text:
        return Trace.open(_fetched(text)), text
    return Trace.open(text), ray.put(_bytes_of(Trace.open(text)))


def _bytes_of(trace: Trace) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.hst")
        trace.save(path)
        with open(path, "rb") as file:
            return file.read()


def _kept(name: str, write: Callable[[Any], None]) -> str:
    """One copy a machine: the file of this name in its temporary folder, written once."""
    folder = os.path.join(tempfile.gettempdir(), f"hotset-{os.getuid()}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as file:
            write(file)
        os.replace(file.name, path)
    return path


def _fetched(address: str) -> str:
    """The file at an fsspec address (s3://, gs://, file://), copied to this machine."""
    import hashlib
    import shutil

    import fsspec

    name = hashlib.blake2b(address.encode(), digest_size=16).hexdigest() + ".hst"

    def write(file: Any) -> None:
        with fsspec.open(address, "rb") as source:
            shutil.copyfileobj(source, file)

    return _kept(name, write)


def _opened(given: _Given, digest: str) -> Trace:
    """The trace on a task's machine; one copy for all of its tasks."""
    if isinstance(given, str):
        return Trace.open(_fetched(given))
    return Trace.open(_kept(digest + ".hst", lambda file: file.write(given)))


def _part(given: _Given, digest: str, settings: dict[str, Any], first: int, end: int) -> bytes:
    """The journal of some replays."""
    trace = _opened(given, digest)
    with tempfile.TemporaryDirectory() as folder:
        journal = os.path.join(folder, "journal")
        _replays(trace, journal, settings, first, end)
        with open(journal, "rb") as file:
            return file.read()


def _replays(trace: Any, journal: str, settings: dict[str, Any], first: int, end: int) -> int:
    """Do some replays into a journal; gives how many there are in all."""
    from ._words import Words, flags

    known = flags(["sweep"])
    words = Words(["sweep"])
    given = {"trace": trace, **settings, "resume": journal, "replays": f"{first}..{end}"}
    for name, value in given.items():
        words.add(name, known[name], value)
    _, notes, _ = _native.run(words.all(), words.traces)
    return int(notes[-1].rsplit(" of ", 1)[1])


def _lines(journal: bytes) -> tuple[bytes, dict[int, bytes]]:
    """A journal's first line, and its others by their replays."""
    first, *others = journal.splitlines(keepends=True)
    return first, {json.loads(line[17:])["replay"]: line for line in others}


def _finished(pending: list[Any]) -> Iterator[Any]:
    """Results as they come."""
    while pending:
        done, pending = ray.wait(pending, num_returns=1)
        yield from done


def sweep(
    traces: Any,
    policies: Any = None,
    capacities: Any = None,
    *,
    journal: str | os.PathLike[str] | None = None,
    block: int = 8,
    retries: int = 3,
    progress: bool | Progress | None = None,
    **settings: Any,
) -> list[Result]:
    """`hotset.sweep` of each trace, its replays shared by the cluster; the results are the same bytes.

    Args:
        traces: a trace or a list: `Trace`, a path on this machine (sent through the object store, one
            copy a machine), or an fsspec address (s3://, gs://, file://) that every machine reads.
        policies: as hotset.sweep's policy; names alone.
        capacities: as hotset.sweep's capacity.
        journal: a folder for the journals: started again, the sweep goes on with them, here or with
            `hotset sweep --resume`.
        block: replays of one task.
        retries: how often a task is done again whose machine was lost.
        progress: as for hotset.sweep; told of tasks.
        settings: as for hotset.sweep.

    Returns:
        A `Result` for each trace, in order.

    Raises:
        HotsetError: as hotset.sweep.
    """
    listed = list(traces) if isinstance(traces, (list, tuple)) else [traces]
    if policies is not None:
        settings["policy"] = policies
    if capacities is not None:
        settings["capacity"] = capacities
    of = settings.get("policy")
    if any(callable(one) for one in (of if isinstance(of, (list, tuple)) else [of])):
        raise _native.HotsetError("policies: a class of one's own stays in its process; give names")
    if block < 1:
        raise _native.HotsetError(f"block: {block} replays are no block")
    task = ray.remote(max_retries=retries, num_cpus=1)(_part)
    tell, close = told(progress, "sweep")
    with contextlib.ExitStack() as stack:
        stack.callback(close)
        folder = os.fspath(journal) if journal is not None else stack.enter_context(_folder())
        os.makedirs(folder, exist_ok=True)
        works, owners = [], {}
        for place, trace in enumerate(listed):
            opened, given = _for_tasks(trace)
            path = os.path.join(folder, f"{opened.content_digest}.journal")
            # None of them: it begins the journal, and says how many there are.
            replays = _replays(opened, path, settings, 1 << 60, (1 << 60) + 1)
            with open(path, "rb") as file:
                _, there = _lines(file.read())
            works.append((opened, path, there))
            for first in range(0, replays, block):
                end = min(first + block, replays)
                if any(replay not in there for replay in range(first, end)):
                    one = {"threads": 1, **settings}
                    reference = task.remote(given, opened.content_digest, one, first, end)
                    owners[reference] = place
        of_tasks, done = len(owners), 0
        for reference in _finished(list(owners)):
            _, path, there = works[owners[reference]]
            _, found = _lines(ray.get(reference))
            with open(path, "ab") as file:
                for replay in sorted(found.keys() - there.keys()):
                    file.write(found[replay])
                    there[replay] = found[replay]
            done += 1
            if tell is not None:
                tell(done, of_tasks)
        return [call(["sweep"], {**settings, "resume": path}, (trace,)) for trace, path, _ in works]


def _folder() -> Any:
    return tempfile.TemporaryDirectory(prefix="hotset-ray-")


def _experiment(given: _Given, digest: str, name: str, settings: dict[str, Any]) -> Result:
    return call(["experiment", name], settings, (_opened(given, digest),))


def experiment(
    name: str,
    traces: Any,
    *,
    seeds: Sequence[int] = (1,),
    retries: int = 3,
    progress: bool | Progress | None = None,
    **settings: Any,
) -> list[Result]:
    """`hotset.experiment(name, trace, seed=...)` of each trace and seed, a task each.

    Args:
        name: "semantic" or "prefetch".
        traces: as for `sweep`.
        seeds: seeds; results are in the order of the traces, of each in that of the seeds.
        retries: as for `sweep`.
        progress: as for `sweep`.
        settings: as for hotset.experiment.

    Returns:
        A `Result` for each trace and seed: the bytes of the same experiment on one machine.
    """
    listed = list(traces) if isinstance(traces, (list, tuple)) else [traces]
    task = ray.remote(max_retries=retries, num_cpus=1)(_experiment)
    given = [_for_tasks(trace) for trace in listed]
    references = [
        task.remote(sent, opened.content_digest, name, {"threads": 1, **settings, "seed": seed})
        for opened, sent in given
        for seed in seeds
    ]
    tell, close = told(progress, "experiment")
    try:
        for done, _ in enumerate(_finished(list(references)), 1):
            if tell is not None:
                tell(done, len(references))
    finally:
        close()
    return list(ray.get(references))
