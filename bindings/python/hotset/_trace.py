"""`Trace`: which experts each token used in each layer, in the order in which a model ran it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any, Union

import numpy

from . import _native
from ._arrays import column, ids_in_place, sequences_of, weights_in_place

Path = Union[str, "os.PathLike[str]"]


class Trace:
    """A router trace: immutable, checked in full when it is made, shared by reference.

    Made by `Trace.open`, `Trace.import_`, `Trace.from_numpy` and `Trace.bundled`; every command takes
    one in place of a path.
    """

    __slots__ = ("_inner",)

    def __init__(self, inner: Any) -> None:
        """Not for callers: see the class methods."""
        if not isinstance(inner, _native.Trace):
            raise TypeError("Trace is made by open(), import_(), from_numpy() and bundled()")
        self._inner = inner

    @classmethod
    def open(cls, path: Path) -> Trace:
        """Open an .hst file; one of more than 1 GiB is read in place.

        Raises:
            HotsetError: the file is absent, damaged or no .hst file.
        """
        return cls(_native.Trace._open(os.fspath(path)))

    @classmethod
    def bundled(cls) -> Trace:
        """The trace that comes with hotset."""
        return cls(_native.Trace._bundled())

    @classmethod
    def import_(cls, *paths: Path, **settings: Any) -> Trace:
        """Read files of any format that `hotset trace import` reads, as one trace.

        Args:
            paths: files or folders, in this order.
            settings: as that command's flags: from_, config, layers, experts, top_k, phase,
                expert_size, name, prompt_tokens, columns, dense_layers, skip_layers.

        Raises:
            HotsetError: a file that is not of the format, with the array or line.
        """
        return cls._made(["import"], settings, [os.fspath(path) for path in paths])

    @classmethod
    def from_numpy(
        cls,
        ids: Any,
        *,
        experts: int | Sequence[int] | None = None,
        name: str = "numpy",
        weights: Any = None,
        sequence: Any = None,
        position: Any = None,
        phase: Any = None,
        step: Any = None,
        token_id: Any = None,
        labels: Sequence[str] | None = None,
        layer_numbers: Sequence[int] | None = None,
        expert_bytes: int | Sequence[int] = 0,
    ) -> Trace:
        """Make a trace of arrays; `ids` and `weights` are read in place, not copied.

        That holds for C-contiguous arrays of the trace's own width: uint8 where every layer has at
        most 256 experts, else uint16; weights of float32, float16 or uint8. Others are converted.
        An array that is read in place is made read-only (its writeable flag is cleared).

        Args:
            ids: expert ids, [tokens, layers, top_k] of any integer type, each layer's best first.
            experts: experts of each layer, or of every layer [default: the highest id plus one].
            name: the trace's name.
            weights: router weights, as ids; finite.
            sequence: the sequence of each token, [tokens]; tokens of one follow each other.
            position: each token's position in its sequence, [tokens] [default: counted].
            phase: 0 prefill, 1 decode, 2 verify, [tokens] [default: decode].
            step: the engine's step of each token, [tokens].
            token_id: vocabulary ids, [tokens].
            labels: a label for each sequence.
            layer_numbers: the layers' numbers in the model [default: 0, 1, ...].
            expert_bytes: bytes of one expert, of each layer or of every one; 0: not known.

        Raises:
            TypeError: an array of another type, such as floats for ids.
            HotsetError: shapes that do not fit, ids that no layer has, weights that are not finite;
                the text says where.
        """
        array, tokens, layers, top_k = ids_in_place(ids)

        def each(given: int | Sequence[int], what: str, most: int = 0xFFFF_FFFF) -> list[int]:
            values = [given] * layers if isinstance(given, int) else [int(one) for one in given]
            if len(values) != layers:
                text = f"{what} has {len(values)} entries for {layers} layers"
                raise _native.HotsetError(text)
            wrong = [value for value in values if not 0 <= value <= most]
            if wrong:
                raise _native.HotsetError(f"{what}: {wrong[0]} is not 0 to {most}")
            return values

        if experts is None:
            experts = (array.max(axis=(0, 2)).astype(int) + 1).tolist() if tokens else 1
        weighted, bf16 = weights_in_place(weights, array.shape)
        phases = column("phase", phase, tokens, 2)
        columns = {
            "name": str(name),
            "numbers": each(range(layers) if layer_numbers is None else layer_numbers, "layer_numbers"),
            "experts": each(experts, "experts"),
            "top_k": [top_k] * layers,
            "expert_bytes": each(expert_bytes, "expert_bytes", (1 << 64) - 1),
            "sequences": sequences_of(sequence, labels, phases, tokens),
            "positions": column("position", position, tokens),
            "phases": phases,
            "steps": column("step", step, tokens),
            "token_ids": column("token_id", token_id, tokens),
            "bf16": bf16,
            "provenance": json.dumps({"made": "from arrays"}),
        }
        return cls(_native.Trace._of_arrays(array, weighted, columns))

    def slice(self, **settings: Any) -> Trace:
        """The part that `hotset trace slice` keeps.

        Args:
            settings: sequences (places, as "0..10" or a list of numbers and ranges), tokens (rows, as
                "0..1000"), phase ("prefill", "decode" or "verify").
        """
        return self._made(["slice"], settings, [self])

    def compose(self, **settings: Any) -> Trace:
        """The trace with the steps of a batch, as `hotset trace compose`.

        Args:
            settings: concurrency, chunk, verify_tokens, arrival, seed.
        """
        return self._made(["compose"], settings, [self])

    def shuffle(self, seed: int = 0) -> Trace:
        """The trace with the order of tokens permuted: the control for temporal locality."""
        return self._made(["shuffle"], {"seed": seed}, [self])

    @classmethod
    def _made(cls, command: list[str], settings: dict[str, Any], positional: list[Any]) -> Trace:
        from ._words import Words, flags, unknown

        known = {k: f for k, f in flags(["trace", *command]).items() if f["id"] != "zstd"}
        words = Words(command)
        for name, value in settings.items():
            if name not in known or known[name]["long"] is None:
                raise unknown(f"Trace.{command[0]}", name, known)
            if isinstance(value, range):
                value = f"{value.start}..{value.stop}"
            if isinstance(value, (list, tuple)):
                value = [f"{v.start}..{v.stop}" if isinstance(v, range) else v for v in value]
            words.add(name, known[name], value)
        place = next(flag for flag in known.values() if flag["long"] is None)
        for one in positional:
            words.add("trace", {**place, "delimited": False}, one)
        trace, _ = _native.make_trace(words.all(), words.traces)
        return cls(trace)

    def save(self, path: Path, zstd: int | None = None) -> None:
        """Write an .hst file, whole or not at all.

        Args:
            path: where to.
            zstd: compress columns at this level, 1 to 19 [default: not compressed].
        """
        if zstd is not None and not 1 <= zstd <= 19:
            raise _native.HotsetError(f"zstd: {zstd} is no level from 1 to 19")
        self._inner._save(os.fspath(path), zstd)

    def export(self, path: Path, to: str) -> None:
        """Write a file of another format, as `hotset trace export --to`."""
        words = ["trace", "export", "memory:0", f"--to={to}", f"--output={os.fspath(path)}"]
        _native.run(words, [("memory:0", self._inner)])

    def info(self) -> dict[str, Any]:
        """What `hotset trace info` says: shape, tokens, locality, columns."""
        output, _, _ = _native.run(
            ["trace", "info", "memory:0", "--format=json"], [("memory:0", self._inner)]
        )
        return dict(json.loads(output))

    def validate(self) -> None:
        """Check every value and both digests again.

        Raises:
            HotsetError: the first fault.
        """
        self._inner.validate()

    @property
    def name(self) -> str:
        """Its name, for people."""
        return str(self._inner.name)

    @property
    def digest(self) -> str:
        """The routing alone as 32 hexadecimal digits of BLAKE3."""
        return str(self._inner.digest)

    @property
    def content_digest(self) -> str:
        """Everything that a replay can see as 32 hexadecimal digits of BLAKE3."""
        return str(self._inner.content_digest)

    @property
    def provenance(self) -> dict[str, Any]:
        """How it was made."""
        return dict(json.loads(self._inner.provenance))

    @property
    def tokens(self) -> int:
        """How many tokens there are."""
        return int(self._inner.tokens)

    @property
    def layers(self) -> list[dict[str, int]]:
        """The MoE layers: number, experts, top_k, expert_bytes (0: not recorded)."""
        return list(self._inner.layers)

    @property
    def sequences(self) -> list[dict[str, Any]]:
        """The sequences: id, label, prompt_tokens, start and end (rows)."""
        return list(self._inner.sequences)

    @property
    def ids(self) -> Any:
        """Expert ids, a copy: uint8 or uint16 [tokens, layers, top_k], best first.

        Where layers differ in top_k it is [tokens, sum of top_k].
        """
        return self._shaped(self._inner._ids(0, self.tokens), self.tokens)

    @property
    def weights(self) -> Any:
        """Router weights, a copy: float32, as ids; None where none were recorded."""
        weights = self._inner._weights()
        return None if weights is None else self._shaped(weights, self.tokens)

    def _shaped(self, flat: Any, tokens: int) -> Any:
        top_k = {layer["top_k"] for layer in self.layers}
        if len(top_k) == 1:
            return flat.reshape(tokens, len(self.layers), top_k.pop())
        return flat.reshape(tokens, -1)

    def to_numpy(self) -> dict[str, Any]:
        """All columns that were recorded, by name, as arrays of [tokens, ...]."""
        columns = {"ids": self.ids, "weights": self.weights}
        for name in ("sequence", "position", "phase", "step", "token_id"):
            columns[name] = getattr(self._inner, name)
        return {name: array for name, array in columns.items() if array is not None}

    def to_pandas(self) -> Any:
        """A DataFrame of a row a token and layer: token, layer, experts (an array), and columns.

        Raises:
            ImportError: pandas is not installed.
        """
        import pandas

        columns = self.to_numpy()
        ids, layers = columns.pop("ids"), len(self.layers)
        weights = columns.pop("weights", None)
        frame = {
            "token": numpy.repeat(numpy.arange(self.tokens), layers),
            "layer": numpy.tile([layer["number"] for layer in self.layers], self.tokens),
        }
        frame.update({name: numpy.repeat(array, layers) for name, array in columns.items()})
        table = pandas.DataFrame(frame)
        table["experts"] = self._by_layer(ids)
        if weights is not None:
            table["weights"] = self._by_layer(weights)
        return table

    def _by_layer(self, array: Any) -> list[Any]:
        if array.ndim == 3:
            return list(array.reshape(-1, array.shape[2]))
        ends = numpy.cumsum([layer["top_k"] for layer in self.layers])[:-1]
        return [part for row in array for part in numpy.split(row, ends)]

    def to_arrow(self) -> Any:
        """A pyarrow Table of a row a token: ids as lists of a fixed length, and the columns.

        Raises:
            ImportError: pyarrow is not installed.
        """
        import pyarrow

        arrays = {}
        for name, array in self.to_numpy().items():
            if array.ndim == 1:
                arrays[name] = pyarrow.array(array)
            else:
                flat = pyarrow.array(array.reshape(-1))
                arrays[name] = pyarrow.FixedSizeListArray.from_arrays(flat, array[0].size)
        return pyarrow.table(arrays)

    def __len__(self) -> int:
        """How many tokens there are."""
        return self.tokens

    def __eq__(self, other: object) -> bool:
        """Equal in every column, label and digest."""
        return isinstance(other, Trace) and bool(self._inner == other._inner)

    def __hash__(self) -> int:
        """Of the contents."""
        return hash(self._inner)

    def __repr__(self) -> str:
        """Name, tokens, layers, digest."""
        return repr(self._inner)

    def __reduce__(self) -> Any:
        """Pickled as the bytes of its .hst file."""
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "trace.hst")
            self.save(path, zstd=1)
            with open(path, "rb") as file:
                return _unpickled, (file.read(),)


def _unpickled(contents: bytes) -> Trace:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.hst")
        with open(path, "wb") as file:
            file.write(contents)
        return Trace.open(path)
