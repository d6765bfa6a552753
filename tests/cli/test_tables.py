"""Files of data: all kinds, headers or none, and what people put into them."""

import io
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from land.cli.console import CommandError, Console
from land.cli.tables import read_data, read_table, write_table

DEFAULTS = {
    "header": None,
    "delimiter": None,
    "decimal": ".",
    "thousands": None,
    "encoding": "utf-8-sig",
    "columns": None,
    "exclude": None,
    "labels": None,
    "drop_missing": False,
    "standardize": False,
}


@pytest.fixture
def read(tmp_path):
    """Write a file and read it as a table."""

    def run(content, name="data.csv", **options):
        file = tmp_path / name
        if isinstance(content, str):
            content = content.encode()
        file.write_bytes(content)
        return read_table(file, SimpleNamespace(**DEFAULTS | options))

    return run


@pytest.fixture
def choose(tmp_path):
    """Write a CSV file and choose columns of it."""

    def run(content, expected=None, usual_label=None, **options):
        file = tmp_path / "data.csv"
        file.write_text(content)
        settings = SimpleNamespace(data=file, **DEFAULTS | options)
        console = Console(quiet=True)
        data = read_data(settings, console, expected, usual_label)
        return data, console.warnings

    return run


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


TEXTS = {
    "commas": ("a,b\n1,2\n3,4\n", {}),
    "semicolons": ("a;b\n1;2\n3;4\n", {}),
    "tabs": ("a\tb\n1\t2\n3\t4\n", {}),
    "bars": ("a|b\n1|2\n3|4\n", {}),
    "windows": ("\ufeffa,b\r\n1,2\r\n\r\n3,4\r\n", {}),
    "spaces": (" a , b \n 1 , 2 \n 3 , 4 \n", {}),
    "quotes": ('"a","b"\n"1","2"\n"3","4"\n', {}),
    "decimal commas": ("a;b\n1,0;2,0\n3,0;4,0\n", {"decimal": ","}),
    "delimiter": ("a:b\n1:2\n3:4\n", {"delimiter": ":"}),
    "blanks": ("a b\n1  2\n3  4\n", {"delimiter": " "}),
    "savetxt": ("# a,b\n1,2\n3,4\n", {}),
    "encoding": ("a,b\n1,2\n3,4\n".encode("utf-16"), {"encoding": "utf-16"}),
}


@pytest.mark.parametrize("case", TEXTS)
def test_text_in_many_forms(read, case):
    content, options = TEXTS[case]
    table = read(content, **options)
    assert list(table) == ["a", "b"]
    np.testing.assert_array_equal(table, [[1, 2], [3, 4]])


HEADERS = {
    "names": ("a,b\n1,2\n", True),
    "numbers": ("1,2\n3,4\n", False),
    "text in a column": ("1,2,red\n3,4,blue\n", False),
    "names that are numbers": ("id,2019\n1,5\n2,6\n", True),
    "missing in the first row": ("1,NA\n3,4\n", False),
    "all text": ("a,b\nred,blue\n", True),
    "one column": ("a\n1\n2\n", True),
}


@pytest.mark.parametrize("case", HEADERS)
def test_a_header_is_found(read, case):
    content, header = HEADERS[case]
    table = read(content)
    assert next(iter(table)) == (
        content.split(",")[0].split("\n")[0] if header else "x1"
    )
    assert len(table) == content.count("\n") - header


@pytest.mark.parametrize(
    "word", ["", "NA", "n/a", "NaN", "null", "None", "?", "-", "."]
)
def test_words_for_missing_values(read, word):
    table = read(f"a,b\n1,{word}\n3,4\n")
    np.testing.assert_array_equal(table["b"], [np.nan, 4.0])
    assert table["a"].dtype == np.float64


THOUSANDS = {
    "commas": ('a,b\n1,"5,380"\n2,"1,002.93"\n', {"thousands": ","}, [5380, 1002.93]),
    "points": (
        "a;b\n1;4.226,93\n2;0,5\n",
        {"decimal": ",", "thousands": "."},
        [4226.93, 0.5],
    ),
    "blanks": ("a,b\n1,1 002 000\n2,7\n", {"thousands": " "}, [1002000, 7]),
}


@pytest.mark.parametrize("case", THOUSANDS)
def test_digits_in_groups(read, case):
    content, options, expected = THOUSANDS[case]
    assert read(content, **options)["b"].tolist() == expected


ARRAYS = {
    "matrix": (npy(np.array([[1, 2], [3, 4]])), "data.npy", ["x1", "x2"]),
    "vector": (npy(np.array([1.0, 3.0])), "data.npy", ["x1"]),
    "fields": (
        npy(np.array([(1, 2.0), (3, 4.0)], dtype=[("a", int), ("b", float)])),
        "data.npy",
        ["a", "b"],
    ),
}


@pytest.mark.parametrize("case", ARRAYS)
def test_arrays(read, case):
    content, name, names = ARRAYS[case]
    table = read(content, name)
    assert list(table) == names
    np.testing.assert_array_equal(table[names[0]], [1.0, 3.0])


def test_archives_of_arrays(tmp_path):
    file = tmp_path / "data.npz"
    X, Z, y = np.ones((3, 2)), np.zeros((3, 2)), np.array(["u", "v", "u"])
    options = SimpleNamespace(**DEFAULTS)
    np.savez(file, X=X, Z=Z, y=y)
    table = read_table(file, options)
    assert list(table) == ["x1", "x2", "y"]
    assert table["y"].tolist() == ["u", "v", "u"]
    np.testing.assert_array_equal(table["x1"], X[:, 0])
    np.savez(file, A=X, B=Z)
    with pytest.raises(CommandError, match="one of its arrays must be X, got A, B"):
        read_table(file, options)


def test_parquet_comes_back(tmp_path):
    file = tmp_path / "data.parquet"
    columns = {"a": np.array([0.1, np.nan]), "b": ["x", None], "c": np.array([1, 2])}
    write_table(file, columns)
    table = read_table(file, SimpleNamespace(**DEFAULTS))
    assert list(table) == ["a", "b", "c"]
    np.testing.assert_array_equal(table["a"], [0.1, np.nan])
    assert table["b"].tolist() == ["x", None]
    file.write_bytes(b"PAR1 no more PAR1")
    with pytest.raises(CommandError, match="cannot be read as parquet"):
        read_table(file, SimpleNamespace(**DEFAULTS))


def test_sheets_of_excel(tmp_path):
    pytest.importorskip("openpyxl", reason="no openpyxl, which reads Excel files")
    file = tmp_path / "data.xlsx"
    rows = {"a": [0.1, None, 3.0], "b": ["x", "-", "y"]}
    pd.DataFrame(rows).to_excel(file, index=False)
    table = read_table(file, SimpleNamespace(**DEFAULTS))
    np.testing.assert_array_equal(table["a"], [0.1, np.nan, 3.0])
    assert table["b"].tolist() == ["x", None, "y"]
    numbers = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]])
    numbers.to_excel(file, index=False, header=False)
    table = read_table(file, SimpleNamespace(**DEFAULTS | {"header": False}))
    assert table.to_numpy().tolist() == numbers.to_numpy().tolist()


BAD = {
    "empty": (b"", "data.csv", "the file is empty"),
    "blank lines": (b"\n \n", "data.csv", "the file is empty"),
    "header only": (b"a,b\n", "data.csv", "no rows of data"),
    "ragged": (b"a,b\n1,2\n3,4,5\n", "data.csv", "Expected 2 fields in line 3, saw 3"),
    "latin": ("ä,b\n1,2\n".encode("latin-1"), "data.csv", "--encoding latin-1"),
    "utf-16": ("a,b\n1,2\n".encode("utf-16-le"), "data.csv", "--encoding utf-16"),
    "unknown": (b"a", "data.ods", "convert it to CSV"),
    "not an array": (b"a", "data.npy", "cannot be read as npy"),
    "three axes": (npy(np.zeros((2, 2, 2))), "data.npy", "must have 2 axes"),
    "no rows": (npy(np.zeros((0, 2))), "data.npy", "no rows of data"),
    "pickle": (npy(np.array([None])), "data.npy", "cannot be read as npy"),
    "no columns": (npy(np.zeros((2, 0))), "data.npy", "no rows of data"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_read_is_named(read, case):
    content, name, message = BAD[case]
    with pytest.raises(CommandError, match=message) as caught:
        read(content, name)
    assert name in str(caught.value)


# Which columns.

FOUR = "a,b,c,kind\n1,2,3,u\n2,4,5,v\n4,1,9,u\n"


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        (["a,c"], ["a", "c"]),
        (["c", "a"], ["c", "a"]),
        (["1,3"], ["a", "c"]),
        (["2-3"], ["b", "c"]),
        (["b,1"], ["b", "a"]),
    ],
)
def test_columns_by_name_or_number(choose, columns, names):
    data, _ = choose(FOUR, columns=columns)
    assert list(data.numbers) == names
    first = {"a": 1.0, "b": 2.0, "c": 3.0}
    assert data.X[0].tolist() == [first[name] for name in names]


def test_labels_are_kept_aside(choose):
    data, _ = choose(FOUR, labels="kind")
    assert list(data.numbers) == ["a", "b", "c"]
    assert data.labels.tolist() == ["u", "v", "u"]
    data, _ = choose(FOUR, labels="1", exclude=["kind"])
    assert list(data.numbers) == ["b", "c"]
    assert data.labels.tolist() == [1, 2, 4]
    assert data.labels.name == "a"


def test_everything_that_is_wrong_is_said_at_once(choose):
    with pytest.raises(CommandError) as caught:
        choose("a,b,c,d\n1,red,1,5\n2,blue,1,\n4,red,1,7\n")
    message = str(caught.value)
    assert "column 'b' holds text, 'red' in row 1" in message
    assert "1 of 3 rows have missing or infinite values" in message
    assert "in row 2, column 'd'" in message
    assert "constant: c" in message
    for option in ("--labels 'b'", "--drop-missing", "--exclude"):
        assert option in message


def test_one_row_is_no_reason_to_leave_out_columns(choose):
    with pytest.raises(CommandError, match=r"one row of data is too few") as caught:
        choose("a,b\n1,5\n")
    assert "--exclude" not in str(caught.value)


def test_a_column_without_values_hides_nothing_else(choose):
    """It is named once, and rows that lack another value are counted without it."""
    with pytest.raises(CommandError) as caught:
        choose("a,b,c\n1,,5\n2,,\n4,,7\n")
    assert str(caught.value).endswith(
        "data.csv: without any value: b (leave out with --exclude); 1 of 3 rows have "
        "missing or infinite values, the first in row 2, column 'c' (leave out these "
        "rows with --drop-missing, or fill them in)"
    )
    with pytest.raises(CommandError, match="every row lacks a value, as row 1"):
        choose("a,b\n1,\n2,\n", expected=["a", "b"])


def test_what_is_wrong_is_left_out_when_asked(choose):
    data, warned = choose(
        "a,b,c,d\n1,red,1,5\n2,blue,1,\n4,red,1,7\n9,red,1,8\n",
        columns=["a", "d"],
        drop_missing=True,
    )
    assert list(data.numbers) == ["a", "d"]
    assert data.numbers.index.tolist() == [1, 3, 4]
    assert warned == ["left out 1 of 4 rows: values are missing"]


OTHER_SIGNS = {
    "decimals": ("a;b\n1,5;2\n2,5;3\n", "--decimal , reads 1,5 as 1.5)"),
    "small": ("a;b\n0,125;2\n0,250;3\n", "--decimal , reads 1,5 as 1.5)"),
    # Never --decimal: it would read 5.38.
    "groups": ('a,b\n"5,380",2\n"7",3\n', "--thousands , reads 5,380 as 5380)"),
    "both": ('a,b\n"1,002.93",2\n"7",3\n', "--thousands , reads 5,380 as 5380)"),
    "points": ("a;b\n1.002,93;2\n4.226,93;3\n", "--decimal , --thousands . reads"),
    "blanks": ("a,b\n1 002,2\n7,3\n", "--thousands space reads 1 002 as 1002)"),
    "neither": ("a,b\n1x,2\n7,3\n", "or out with --exclude)"),
    "dates": ("a,b\n2020-01-31,2\n2020-02-01,3\n", "column 'a' holds dates, '2020"),
    "European dates": ("a,b\n31.1.20,2\n1.2.20,3\n", "holds dates, '31.1.20'"),
}


@pytest.mark.parametrize("case", OTHER_SIGNS)
def test_options_for_other_signs_are_named(choose, case):
    content, expected = OTHER_SIGNS[case]
    with pytest.raises(CommandError, match=re.escape(expected)):
        choose(content)


def test_columns_of_very_different_scale(choose):
    text = "a,b\n1,5000\n2.5,9000\n3,4000\n"
    (warning,) = choose(text)[1]
    assert "column 'b' varies" in warning
    assert "--standardize" in warning
    assert choose(text, standardize=True)[1] == []
    assert choose(text, expected=["a", "b"])[1] == []
    assert choose(text.replace("000", ""))[1] == []


def test_columns_of_a_model_are_found_by_name(choose):
    data, _ = choose(FOUR, expected=["c", "a"], usual_label="kind")
    assert list(data.numbers) == ["c", "a"]
    assert data.X[0].tolist() == [3.0, 1.0]
    assert data.labels.tolist() == ["u", "v", "u"]
    with pytest.raises(CommandError, match=r"no column 'z': .* with --columns"):
        choose(FOUR, expected=["z", "a"])
    with pytest.raises(CommandError, match="must name 2 columns"):
        choose(FOUR, expected=["z", "a"], columns=["a"])
    data, _ = choose(FOUR, expected=["z", "w"], columns=["b,a"])
    assert data.X[0].tolist() == [2.0, 1.0]


# What is written.


@pytest.mark.parametrize("name", ["out.csv", "out.tsv", "out.npy", "out.parquet"])
def test_numbers_come_back_exactly(tmp_path, name):
    values = np.random.default_rng(0).normal(size=(20, 2)) * [1e-9, 1e9]
    write_table(tmp_path / name, {"a": values[:, 0], "b": values[:, 1]})
    table = read_table(tmp_path / name, SimpleNamespace(**DEFAULTS))
    np.testing.assert_array_equal(table, values)
    assert [file.name for file in Path(tmp_path).iterdir()] == [name]


def test_text_does_not_go_into_arrays(tmp_path):
    columns = {"a": np.array(["x"], dtype=object)}
    with pytest.raises(CommandError, match="numbers only"):
        write_table(tmp_path / "out.npy", columns)
    assert list(tmp_path.iterdir()) == []
