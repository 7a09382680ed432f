"""One key twice, hidden in every way that JSON has. Parsers keep the last one and say nothing."""

from __future__ import annotations

from tests.safety.forge import st
from tests.safety.prison import assert_refused, attack

A = '{"dtype":"U8","shape":[4],"data_offsets":[0,4]}'
B = '{"dtype":"U8","shape":[4],"data_offsets":[4,8]}'
C = '{"dtype":"U8","shape":[8],"data_offsets":[0,8]}'


def test_a_name_twice_is_refused_however_it_is_spelled() -> None:
    files = {}
    for first, second in (("w", "w"), ("w", "\\u0077"), ("\\u0077", "w"), ("\\u0077", "\\u0077"), ("/", "\\/"), ("é", "\\u00E9")):
        files[f"{first} {second}"] = st(f'{{"{first}":{C},"{second}":{C}}}')
        files[f"{first} {second}, and another"] = st(f'{{"{first}":{A},"b":{B},"{second}":{A}}}')
        files[f"{first} {second}, after metadata"] = st(f'{{"__metadata__":{{"k":"v"}},"{first}":{C},"{second}":{C}}}')
        files[f"{first} {second}, before metadata"] = st(f'{{"{first}":{C},"{second}":{C},"__metadata__":{{"k":"v"}}}}')
    files["\U0001f525"] = st(f'{{"\U0001f525":{C},"\\ud83d\\udd25":{C}}}')
    files["nothing"] = st(f'{{"":{C},"":{C}}}')
    assert_refused(files, "twice")


def test_a_field_twice_is_refused() -> None:
    fields = ('"dtype":"U8"', '"shape":[8]', '"data_offsets":[0,8]', '"d\\u0074ype":"U8"', '"sh\\u0061pe":[8]')
    whole = C[1:-1]
    files = {field: st(f'{{"t":{{{whole},{field}}}}}') for field in fields}
    files |= {f"{field} first": st(f'{{"t":{{{field},{whole}}}}}') for field in fields}
    assert_refused(files)


def test_metadata_twice_is_refused() -> None:
    one, other = '"__metadata__":{"k":"v"}', '"__metadat\\u0061__":{"k":"w"}'
    for first, second in ((one, one), (one, other), (other, one), (other, other)):
        files = {
            "together": st(f'{{{first},{second},"t":{C}}}'),
            "apart": st(f'{{{first},"t":{C},{second}}}'),
            "behind": st(f'{{"t":{C},{first},{second}}}'),
            "alone": st(f"{{{first},{second}}}", b""),
        }
        assert_refused(files)


def test_a_metadata_key_twice_is_refused() -> None:
    for pairs in ('"k":"v","k":"w"', '"k":"v","\\u006b":"v"', '"k":"v","k":"v"', '":":"","\\u003a":""', '"":"",  "":""'):
        files = {
            "first": st(f'{{"__metadata__":{{{pairs}}},"t":{C}}}'),
            "last": st(f'{{"t":{C},"__metadata__":{{{pairs}}}}}'),
            "alone": st(f'{{"__metadata__":{{{pairs}}}}}', b""),
        }
        assert_refused(files, "twice")


def test_a_tensor_cannot_be_called_as_the_metadata_is() -> None:
    names = ("__metadata__", "\\u005f_metadata__", "__metadat\\u0061__")
    files = {name: st(f'{{"{name}":{C}}}') for name in names}
    files |= {f"{name} beside metadata": st(f'{{"__metadata__":{{"k":"v"}},"{name}":{C}}}') for name in names}
    assert_refused(files)


def test_colons_quotes_and_escapes_in_names_do_not_hide_a_duplicate() -> None:
    names = (":", "::::", '\\":\\"', '\\\\\\":', "\\\\", ':\\"', '{\\"a\\":1}', "\\u003a", "\\u0022:\\u0022")
    files = {f"{name} beside": st(f'{{"{name}":{A},"w":{B},"w":{B}}}') for name in names}
    files |= {f"{name} twice": st(f'{{"{name}":{C},"{name}":{C}}}') for name in names}
    assert_refused(files, "twice")


def test_colons_quotes_and_escapes_in_names_are_not_taken_for_a_duplicate() -> None:
    names = (
        ":",
        "::::",
        '\\":\\"',
        '\\\\\\":',
        "\\\\",
        ':\\"',
        '{\\"a\\":1}',
        "\\u003a",
        "\\u0022:\\u0022",
        "\\\\\\\\",
        "dtype",
        "shape",
    )
    files = {name: st(f'{{"{name}":{A},"w":{B}}}') for name in names}
    files |= {f"{name} and metadata": st(f'{{"{name}":{A},"__metadata__":{{"{name}":"{name}:"}},"w":{B}}}') for name in names}
    for label, outcome in attack(files).items():
        assert outcome.error is None and len(outcome.tensors) == 2, (label, outcome.text)


def test_a_duplicate_among_a_hundred_thousand_names_is_found_in_time() -> None:
    entry = '{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
    names = ",".join(f'"k{at:06}":{entry}' for at in range(100_000))
    files = {
        "the last": st(f'{{{names},"k099999":{entry}}}', b""),
        "the first": st(f'{{{names},"k000000":{entry}}}', b""),
        "spelled otherwise": st(f'{{{names},"\\u006b099999":{entry}}}', b""),
    }
    assert_refused(files, "twice")
