"""What was written into an EDF file is what is read from it."""

import numpy as np
import pytest

from reproduction.data.edf import Annotation, read_annotations, read_signal

TWO_RECORDS = np.array([[-2048, 0, 2047, 5], [7, 8, 9, -9]])


@pytest.fixture
def write(tmp_path):
    def write_bytes(content):
        path = tmp_path / "night.edf"
        path.write_bytes(content)
        return path

    return write_bytes


@pytest.fixture
def night(edf):
    """Bytes of two records of three signals, each at its own rate."""

    def make(**header):
        return edf(
            [
                {"label": "Event marker", "samples": [[1], [2]]},
                {
                    "label": "EEG Fpz-Cz",
                    "samples": TWO_RECORDS,
                    "physical": (-192, 192),
                },
                {"label": "Temp", "samples": [[3, 4], [5, 6]], "unit": "DegC"},
            ],
            **header,
        )

    return make


def test_signal_is_in_its_unit_at_its_rate(write, night):
    signal = read_signal(write(night(record_s="0.5")), "EEG Fpz-Cz")
    assert signal.values.dtype == np.float64
    gain = 384 / 4095
    np.testing.assert_allclose(
        signal.values, gain * (TWO_RECORDS.ravel() + 2048) - 192, rtol=1e-14
    )
    # The ends of the digital range are the ends of the physical one.
    assert signal.values[[0, 2]].tolist() == [-192.0, 192.0]
    assert signal.sampling_rate == 8.0
    assert signal.unit == "uV"


def test_annotations_of_all_records_are_read(write, hypnogram):
    path = write(
        hypnogram(
            b"+0\x14\x14\0+0\x1530630\x14Sleep stage W\x14\0",
            b"+30\x14\x14\0+30630\x15120.5\x14Sleep stage 1\x14\0-1.5\x14a\x14b\x14\0",
            "+60\x14\x14\0+7\x14Übergang\x14\0".encode(),
        )
    )
    assert read_annotations(path) == [
        Annotation(0.0, 30630.0, "Sleep stage W"),
        Annotation(30630.0, 120.5, "Sleep stage 1"),
        Annotation(-1.5, 0.0, "a"),
        Annotation(-1.5, 0.0, "b"),
        Annotation(7.0, 0.0, "Übergang"),
    ]


def test_missing_signal_is_named_with_those_there_are(write, night):
    with pytest.raises(
        ValueError, match=r"night\.edf .*'EEG Pz-Oz', only Event marker"
    ):
        read_signal(write(night()), "EEG Pz-Oz")
    with pytest.raises(ValueError, match=r"night\.edf .*'EDF Annotations', only"):
        read_annotations(write(night()))


def test_cut_file_is_refused(write, night):
    with pytest.raises(ValueError, match=r"night\.edf .*after 1 of 2 data records"):
        read_signal(write(night()[:-1]), "EEG Fpz-Cz")
    with pytest.raises(ValueError, match=r"night\.edf .*within the header"):
        read_signal(write(night()[:700]), "EEG Fpz-Cz")


@pytest.mark.parametrize("content", [b"", b"GIF89a" * 100, b"\xffBIOSEMI" * 100])
def test_file_that_is_not_edf_is_named(write, content):
    with pytest.raises(ValueError, match=r"night\.edf cannot be read as EDF"):
        read_signal(write(content), "EEG Fpz-Cz")
