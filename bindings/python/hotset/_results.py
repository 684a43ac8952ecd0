"""What commands give: the command line's JSON, with rows to look at."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping
from typing import Any

# Rows that a notebook shows.
_SHOWN = 60


class Row(Mapping[str, Any]):
    """One row of a result: `row["hit_rate"]` or `row.hit_rate`, as in the JSON (docs/metrics.md)."""

    __slots__ = ("_fields",)

    def __init__(self, fields: dict[str, Any]) -> None:
        """Wrap one object of the JSON's `rows`."""
        self._fields = fields

    def __getitem__(self, name: str) -> Any:
        """The field of this name."""
        return self._fields[name]

    def __getattr__(self, name: str) -> Any:
        """The field of this name."""
        if name.startswith("_"):
            # Asked for while a pickled row is made again, before it has any.
            raise AttributeError(name)
        try:
            return self._fields[name]
        except KeyError:
            raise AttributeError(f"the row has no '{name}': {', '.join(self._fields)}") from None

    def __iter__(self) -> Iterator[str]:
        """The names of the fields."""
        return iter(self._fields)

    def __len__(self) -> int:
        """How many fields there are."""
        return len(self._fields)

    def __repr__(self) -> str:
        """The fields that are numbers or text."""
        plain = (f"{k}={v!r}" for k, v in self._fields.items() if not isinstance(v, (dict, list)))
        return f"Row({', '.join(plain)})"

    def link(self, name: str) -> Row:
        """The prices over one link.

        Raises:
            KeyError: the row has no link of this name.
        """
        for priced in self._fields.get("links", []):
            if priced["link"] == name:
                return Row(priced)
        known = ", ".join(priced["link"] for priced in self._fields.get("links", []))
        raise KeyError(f"no link '{name}'; there are: {known or 'none'}")

    def flat(self) -> dict[str, Any]:
        """The same without nesting: prices as `h200-pcie.serial_ms_per_token`."""
        return _flat(self._fields)


def _flat(fields: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in fields.items():
        if isinstance(value, Mapping):
            flat.update(_flat(value, f"{prefix}{name}."))
        elif name == "links" and isinstance(value, list):
            for link in value:
                if isinstance(link, Mapping) and "link" in link:
                    rest = {k: v for k, v in link.items() if k != "link"}
                    flat.update(_flat(rest, f"{prefix}{link['link']}."))
        else:
            flat[prefix + name] = value
    return flat


class Result:
    """What a command gave.

    Attributes:
        command: the command's name.
        data: the command line's whole JSON document, as Python's objects.
        rows: its rows; of a result that has none, one of the whole document.
        notes: warnings and notes, a line each.
        passed: whether the check that it made passed; True where it makes none.
    """

    def __init__(self, command: str, text: str, notes: list[str], passed: bool) -> None:
        """Read the command line's JSON."""
        self.command, self.notes, self.passed = command, notes, passed
        self._text = text
        self.data: dict[str, Any] = json.loads(text)
        self.rows: list[Row] = [Row(row) for row in self._row_objects()]

    def _row_objects(self) -> list[dict[str, Any]]:
        data = self.data
        for place in (data, data.get("block", {})):
            if isinstance(place, dict) and isinstance(place.get("rows"), list):
                return list(place["rows"])
        blocks = data.get("blocks")
        if isinstance(blocks, list):
            return [row for block in blocks for row in block.get("rows", [])]
        for name in ("policies", "links", "residuals", "machines"):
            rows = data.get(name)
            if isinstance(rows, list) and all(isinstance(row, dict) for row in rows):
                return list(rows)
        return [data]

    @property
    def settings(self) -> dict[str, Any]:
        """What made the result."""
        return dict(self.data.get("settings", {}))

    @property
    def trace(self) -> dict[str, Any]:
        """The trace's name, digests and shape."""
        return dict(self.data.get("trace", {}))

    def to_json(self) -> str:
        """The command line's JSON, byte for byte."""
        return self._text

    def to_pandas(self) -> Any:
        """A row of a pandas DataFrame for each row; prices as `h200-pcie.serial_ms_per_token`.

        Raises:
            ImportError: pandas is not installed.
        """
        import pandas

        return pandas.DataFrame([row.flat() for row in self.rows])

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        """The rows."""
        return iter(self.rows)

    def __eq__(self, other: object) -> bool:
        """The same document."""
        return isinstance(other, Result) and self._text == other._text

    def __hash__(self) -> int:
        """Of the document."""
        return hash(self._text)

    def __repr__(self) -> str:
        """How much there is."""
        return f"<hotset {self.command}: {len(self.rows)} rows>"

    def _repr_html_(self) -> str:
        rows = [row.flat() for row in self.rows[:_SHOWN]]
        names: dict[str, None] = {}
        for row in rows:
            names.update(dict.fromkeys(k for k, v in row.items() if not isinstance(v, list)))
        shown = [n for n in names if any(row.get(n) not in (None, 0, "", 0.0) for row in rows)]
        head = "".join(f"<th>{html.escape(name)}</th>" for name in shown)
        body = "".join(
            "<tr>" + "".join(f"<td>{_cell(row.get(name))}</td>" for name in shown) + "</tr>"
            for row in rows
        )
        rest = len(self.rows) - len(rows)
        more = f"<p>{rest} more rows</p>" if rest else ""
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}{notes}"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else html.escape(str(value))
