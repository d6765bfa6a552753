"""The European Data Format: one signal of a recording, or its annotations.

A file is a header of 256 bytes, 256 more for each signal, and data records. A record
covers a fixed time and holds the samples of one signal after those of the other, as
little-endian 16-bit integers that the header maps linearly to a physical unit. In EDF+
the bytes of a signal called "EDF Annotations" are text instead: annotations with onset
and duration. (B. Kemp et al., Electroencephalogr Clin Neurophysiol 82, 1992; B. Kemp
and J. Olivan, Clin Neurophysiol 114, 2003.)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reproduction.data.files import FloatArray

ANNOTATIONS = "EDF Annotations"
# Widths of the fields that every signal has, in the order of the header.
_SIGNAL_FIELDS = {
    "label": 16,
    "transducer": 80,
    "unit": 8,
    "physical_minimum": 8,
    "physical_maximum": 8,
    "digital_minimum": 8,
    "digital_maximum": 8,
    "prefiltering": 80,
    "n_samples": 8,
    "reserved": 32,
}


@dataclass(frozen=True)
class Signal:
    """A signal in its physical unit."""

    values: FloatArray = field(repr=False)
    sampling_rate: float
    unit: str


@dataclass(frozen=True)
class Annotation:
    """A text with its onset and duration in seconds from the start of the file."""

    onset: float
    duration: float
    text: str


@dataclass(frozen=True)
class _Header:
    n_bytes: int
    kind: str  # "" for plain EDF, "EDF+C" continuous, "EDF+D" interrupted
    n_records: int  # -1: not known
    record_s: float
    signals: list[dict[str, str]]

    def n_samples(self, index: int) -> int:
        """Samples of one signal in one record."""
        return int(self.signals[index]["n_samples"])

    @property
    def record_length(self) -> int:
        """Samples of all signals in one record."""
        return sum(self.n_samples(index) for index in range(len(self.signals)))

    def index(self, label: str) -> int:
        """The position of the signal with this label."""
        labels = [signal["label"] for signal in self.signals]
        if label not in labels:
            raise ValueError(f"no signal {label!r}, only {', '.join(labels)}")
        return labels.index(label)


def read_signal(path: Path, label: str) -> Signal:
    """Read the signal called ``label``, in its physical unit."""
    try:
        header = _read_header(path)
        if header.kind.startswith("EDF+D"):
            raise ValueError("the recording is interrupted (EDF+D)")
        index = header.index(label)
        digital = _read_samples(path, header, index)
        chosen = header.signals[index]
        low, high = (float(chosen[f"digital_{end}imum"]) for end in ("min", "max"))
        bottom, top = (float(chosen[f"physical_{end}imum"]) for end in ("min", "max"))
        gain = (top - bottom) / (high - low)
        sampling_rate = header.n_samples(index) / header.record_s
    except (ValueError, ZeroDivisionError) as error:
        raise ValueError(f"{path} cannot be read as EDF: {error}.") from error
    values = bottom + gain * (digital.ravel().astype(np.float64) - low)
    return Signal(values, sampling_rate, chosen["unit"])


def read_annotations(path: Path) -> list[Annotation]:
    """Read the annotations of an EDF+ file in the order of the file."""
    try:
        header = _read_header(path)
        records = _read_samples(path, header, header.index(ANNOTATIONS))
        lists = b"\0".join(record.tobytes() for record in records).split(b"\0")
        return [note for text in lists if text for note in _parse_list(text)]
    except ValueError as error:
        raise ValueError(f"{path} cannot be read as EDF+: {error}.") from error


def _read_header(path: Path) -> _Header:
    with path.open("rb") as file:
        fixed = file.read(256).decode("latin-1")
        if len(fixed) < 256 or fixed[:8].strip() != "0":
            raise ValueError("its first bytes are not those of an EDF header")
        n_signals = int(fixed[252:256])
        text = file.read(256 * n_signals).decode("latin-1")
    if len(text) < 256 * n_signals:
        raise ValueError("it ends within the header")
    signals: list[dict[str, str]] = [{} for _ in range(n_signals)]
    start = 0
    for name, width in _SIGNAL_FIELDS.items():
        for signal in signals:
            signal[name] = text[start : start + width].strip()
            start += width
    return _Header(
        n_bytes=int(fixed[184:192]),
        kind=fixed[192:236].strip(),
        n_records=int(fixed[236:244]),
        record_s=float(fixed[244:252]),
        signals=signals,
    )


def _read_samples(path: Path, header: _Header, index: int) -> NDArray[np.int16]:
    """Return the samples of one signal, a row for each record."""
    there = (path.stat().st_size - header.n_bytes) // (2 * header.record_length)
    n_records = there if header.n_records == -1 else header.n_records
    if there < n_records:
        raise ValueError(f"it ends after {there} of {n_records} data records")
    samples = np.fromfile(
        path,
        dtype="<i2",
        count=n_records * header.record_length,
        offset=header.n_bytes,
    ).reshape(n_records, header.record_length)
    start = sum(header.n_samples(before) for before in range(index))
    return samples[:, start : start + header.n_samples(index)]


def _parse_list(text: bytes) -> list[Annotation]:
    """Parse one time-stamped list: onset [0x15 duration] 0x14 text 0x14 text 0x14.

    The list without a text that keeps the time of a record has no annotation.
    """
    stamp, *texts = text.split(b"\x14")
    onset, _, duration = stamp.partition(b"\x15")
    return [
        Annotation(float(onset), float(duration or 0.0), note.decode("utf-8"))
        for note in texts
        if note
    ]
