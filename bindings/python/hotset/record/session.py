"""The life of a recording: started once, then closed into a file or aborted without one."""

from __future__ import annotations

import os
import threading
import warnings
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from . import output
from .errors import RecorderError

Self = TypeVar("Self", bound="Session")


class Session:
    """What recorders do around their hooks; as a context manager, by how the block ends."""

    def __init__(self, path: str | Path, *, overwrite: bool, compress: bool) -> None:
        """Checks the file's name; hooks nothing yet."""
        self._path = Path(path)
        self._overwrite = overwrite
        self._compress = compress
        self._state = "new"
        self._labels: list[str] = []
        self._thread: tuple[int, int] | None = None
        output.check_path(self._path, overwrite)

    def label(self, *labels: str) -> None:
        """Names the next sequences, in the order of the batch; others have no name."""
        self._labels.extend(labels)

    def alone(self) -> None:
        """Refuses a second thread and a forked process: rows of two would mix in one file."""
        here = (os.getpid(), threading.get_ident())
        if self._thread is None:
            self._thread = here
        elif self._thread != here:
            other = "thread" if self._thread[0] == here[0] else "process"
            raise RecorderError(
                f"another {other} runs the model: a recording follows one, the first that ran it"
            )

    def start(self) -> None:
        """Sets the hooks; `with` does this."""
        if self._state != "new":
            raise RecorderError(f"this recorder is {self._state}; make another")
        self._hook()
        self._state = "running"

    def close(self) -> None:
        """Takes the hooks off and writes the file; what follows is not recorded."""
        if self._state != "running":
            return
        if self._thread is not None and self._thread[0] != os.getpid():
            raise RecorderError("a forked process cannot close the recording of its parent")
        self._unhook()
        try:
            output.check_path(self._path, self._overwrite)
            self._write()
        finally:
            self._state = "closed"
            self._release()
        if left := len(self._labels):
            warnings.warn(
                f"{left} labels were left over: fewer sequences ran than were named",
                stacklevel=2,
            )

    def abort(self) -> None:
        """Takes the hooks off and writes nothing."""
        if self._state == "running":
            self._unhook()
        self._state = "closed"
        self._release()

    def __enter__(self: Self) -> Self:
        """Starts."""
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes; after an exception writes nothing."""
        if kind is None:
            self.close()
        else:
            self.abort()

    # What an engine's recorder gives.

    def _hook(self) -> None:
        raise NotImplementedError

    def _unhook(self) -> None:
        raise NotImplementedError

    def _write(self) -> None:
        raise NotImplementedError

    def _release(self) -> None:
        raise NotImplementedError
