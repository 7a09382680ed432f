"""`Config`: what Burn's `#[derive(Config)]` is in Rust. The expected JSON is what serde_json prints, written out by hand."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Literal

import pytest

import burnstore as bs


class NetConfig(bs.Config):
    """The configuration of the chapters on importing PyTorch models."""

    n_head: int
    n_layer: int
    d_model: int
    some_float: float
    some_int: int
    some_bool: bool
    some_str: str
    some_list_int: list[int]
    some_list_str: list[str]
    some_list_float: list[float]
    some_dict: dict[str, str]


class Activation(enum.Enum):
    """An enum without data is its variant's name in JSON."""

    Relu = 1
    Gelu = 2


class Linear(bs.Config):
    """A config inside another."""

    d_in: int
    d_out: int
    bias: bool = True


class Conv(bs.Config):
    """A second one, so that a field can be either."""

    channels: tuple[int, int]


class Deep(bs.Config):
    """Everything that can be inside a config."""

    layers: list[Linear] = []  # noqa: RUF012
    layer: Linear | Conv | None = None
    activation: Activation = Activation.Relu
    names: dict[str, float] = {}  # noqa: RUF012
    maybe: int | None = None
    mode: Literal["a", "b"] = "a"
    seeds: dict[int, str] = {}  # noqa: RUF012
    where: Path = Path("data")


NET = {
    "n_head": 4,
    "n_layer": 6,
    "d_model": 512,
    "some_float": 0.1,
    "some_int": -7,
    "some_bool": True,
    "some_str": "hello",
    "some_list_int": [1, 2, 3],
    "some_list_str": ["a", "b", "c"],
    "some_list_float": [0.1, 0.2, 3.0],
    "some_dict": {"key1": "value1", "key2": "value2"},
}
NET_JSON = """{
  "n_head": 4,
  "n_layer": 6,
  "d_model": 512,
  "some_float": 0.1,
  "some_int": -7,
  "some_bool": true,
  "some_str": "hello",
  "some_list_int": [
    1,
    2,
    3
  ],
  "some_list_str": [
    "a",
    "b",
    "c"
  ],
  "some_list_float": [
    0.1,
    0.2,
    3.0
  ],
  "some_dict": {
    "key1": "value1",
    "key2": "value2"
  }
}"""


def test_saving_writes_what_serde_json_prints(tmp_path: Path) -> None:
    NetConfig(**NET).save(tmp_path / "my_config.json")
    assert (tmp_path / "my_config.json").read_bytes() == NET_JSON.encode()


def test_loading_gives_back_what_was_saved(tmp_path: Path) -> None:
    config = NetConfig(**NET)
    config.save(tmp_path / "c.json")
    assert NetConfig.load(tmp_path / "c.json") == config
    assert NetConfig.load_binary(NET_JSON.encode()) == config
    assert str(config) == NET_JSON


def test_saving_replaces_a_file_as_burn_does(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    Linear(d_in=1, d_out=2).save(path)
    Linear(d_in=3, d_out=4).save(path)
    assert Linear.load(path).d_in == 3
    assert list(tmp_path.iterdir()) == [path]


def test_each_field_has_a_builder_that_gives_a_changed_copy() -> None:
    config = NetConfig(**NET)
    changed = config.with_n_head(8).with_some_str("bye")
    assert (changed.n_head, changed.some_str, changed.d_model) == (8, "bye", 512)
    assert (config.n_head, config.some_str) == (4, "hello")
    assert type(changed) is NetConfig
    assert "with_n_head" in dir(config)
    assert not hasattr(config, "with_n_heads")


def test_a_builder_that_the_class_defines_is_kept() -> None:
    class Special(bs.Config):
        size: int

        def with_size(self, value: int) -> Special:
            return Special(size=2 * value)

    assert Special(size=1).with_size(4).size == 8


def test_fields_with_defaults_may_come_before_others_and_a_child_adds_more() -> None:
    class Base(bs.Config):
        dropout: float = 0.1
        size: int

    class Child(Base):
        depth: int

    child = Child(size=1, depth=2)
    assert (child.dropout, child.size, child.depth) == (0.1, 1, 2)
    assert child.with_dropout(0.5) == Child(size=1, depth=2, dropout=0.5)


def test_lists_and_dicts_as_defaults_are_not_shared() -> None:
    one, two = Deep(), Deep()
    one.layers.append(Linear(d_in=1, d_out=1))
    one.names["x"] = 1.0
    assert two.layers == []
    assert two.names == {}


def test_nested_configs_and_enums_are_written_as_serde_writes_them(tmp_path: Path) -> None:
    deep = Deep(
        layers=[Linear(d_in=1, d_out=2)],
        layer=Conv(channels=(3, 4)),
        activation=Activation.Gelu,
        names={"a": 1.0},
        mode="b",
        seeds={7: "x"},
    )
    deep.save(tmp_path / "d.json")
    assert (
        (tmp_path / "d.json").read_text()
        == """{
  "layers": [
    {
      "d_in": 1,
      "d_out": 2,
      "bias": true
    }
  ],
  "layer": {
    "Conv": {
      "channels": [
        3,
        4
      ]
    }
  },
  "activation": "Gelu",
  "names": {
    "a": 1.0
  },
  "maybe": null,
  "mode": "b",
  "seeds": {
    "7": "x"
  },
  "where": "data"
}"""
    )
    assert Deep.load(tmp_path / "d.json") == deep


@pytest.mark.parametrize(
    ("value", "text"),
    [  # Rust's shortest digits: a point up to 1e16 and down to 1e-5, an exponent beyond
        *((1.0, "1.0"), (-0.0, "-0.0"), (0.1, "0.1"), (100.0, "100.0"), (1234.5, "1234.5"), (1e15, "1000000000000000.0")),
        *((1e16, "1e16"), (123456789012345680.0, "1.2345678901234568e17"), (1.5e300, "1.5e300"), (5e-324, "5e-324")),
        *((1e-4, "0.0001"), (1e-5, "0.00001"), (1.25e-5, "0.0000125"), (1e-6, "1e-6"), (1.5e-7, "1.5e-7")),
        (1.7976931348623157e308, "1.7976931348623157e308"),
    ],
)
def test_floats_are_printed_as_rust_prints_them(value: float, text: str) -> None:
    class One(bs.Config):
        x: float

    assert str(One(x=value)) == f'{{\n  "x": {text}\n}}'
    assert One.load_binary(str(One(x=value)).encode()).x == value


def test_text_is_escaped_as_serde_json_escapes_it() -> None:
    class One(bs.Config):
        x: str

    assert str(One(x='é✓ "\\/\n\t\r\b\f\x01\x7f')) == '{\n  "x": "é✓ \\"\\\\/\\n\\t\\r\\b\\f\\u0001\x7f"\n}'


def test_missing_fields_take_defaults_and_unknown_ones_are_left_out() -> None:
    assert Linear.load_binary(b'{"d_in": 1, "d_out": 2, "other": {}}') == Linear(d_in=1, d_out=2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"d_in": 1}', "c.json, d_out: expected int, found nothing"),
        ('{"d_in": 1, "d_outt": 2}', "did you mean 'd_outt'?"),
        ('{"d_in": "x", "d_out": 2}', "c.json, d_in: expected int, found str 'x'."),
        ('{"d_in": true, "d_out": 2}', "c.json, d_in: expected int, found bool True."),
        ('{"d_in": 1.0, "d_out": 2}', "c.json, d_in: expected int, found float 1.0."),
        ('{"d_in": null, "d_out": 2}', "c.json, d_in: expected int, found None."),
        ("[1]", "c.json: expected Linear, found a list of 1."),
    ],
)
def test_a_value_that_does_not_fit_is_named(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(text)
    with pytest.raises(bs.errors.ConfigError) as caught:
        Linear.load(tmp_path / "c.json")
    assert message in str(caught.value).replace(f"{tmp_path}/", "")


@pytest.mark.parametrize("text", ["", "{", '{"d_in": NaN}', "\xff", "[" * 100_000, '{"d_in": 1, "d_in": 2, "d_out": 3}'])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(bs.errors.BurnstoreError):
        Linear.load_binary(text.encode("latin-1"), "c.json")


def test_a_file_that_is_not_there_is_a_file_not_found_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.json: there is no such file"):
        Linear.load(tmp_path / "none.json")


def test_what_json_cannot_hold_is_refused_with_its_path_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(bs.errors.ConfigError, match="JSON has no nan") as caught:
        Deep(names={"a": float("nan")}).save(tmp_path / "c.json")
    assert caught.value.where == "names.a"
    with pytest.raises(bs.errors.ConfigError, match="a object has no place in JSON"):
        Deep(names={"a": object()}).save(tmp_path / "c.json")  # type: ignore[dict-item]
    assert list(tmp_path.iterdir()) == []


def test_one_of_several_configs_is_told_by_its_name_or_by_its_fields() -> None:
    assert Deep.load_binary(b'{"layer": {"Linear": {"d_in": 1, "d_out": 2}}}').layer == Linear(d_in=1, d_out=2)
    assert Deep.load_binary(b'{"layer": {"channels": [1, 2]}}').layer == Conv(channels=(1, 2))
    with pytest.raises(bs.errors.ConfigError, match=r"expected Linear \| Conv \| None, and 0 of them fit"):
        Deep.load_binary(b'{"layer": {"channels": [1, 2], "d_in": 1}}')


def test_classes_inside_a_function_can_be_written() -> None:
    class Inner(bs.Config):
        x: int = 1

    class Outer(bs.Config):
        inner: Inner = Inner()

    assert str(Outer()) == '{\n  "inner": {\n    "x": 1\n  }\n}'
    with pytest.raises(bs.errors.UsageError, match="'Inner' is not defined; define the classes that it names at the top"):
        Outer.load_binary(b"{}")


def test_a_config_as_a_default_is_not_shared() -> None:
    class Outer(bs.Config):
        inner: Linear = Linear(d_in=1, d_out=2)

    one, two = Outer(), Outer()
    one.inner.d_in = 5
    assert two.inner.d_in == 1
