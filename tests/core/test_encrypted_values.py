"""The format of encrypted values, and the codec."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from rota import ConfigurationError, Encrypted, Undecryptable
from rota.client.encryption import new_key
from rota.core.encrypted_values import (
    decrypt_arguments,
    decrypt_response,
    decrypt_result,
    encrypt_arguments,
    encrypt_response,
    encrypt_result,
    is_encrypted,
    readable,
)
from rota.core.job_record_codec import decode_result, encode_result

ARGUMENTS = b'{"card":"4111","items":[1,2]}'


@pytest.fixture
def codec() -> Encrypted:
    return Encrypted([new_key()])


def test_encrypted_values_are_decrypted(codec: Encrypted) -> None:
    sealed = encrypt_arguments(codec, "pay", ARGUMENTS)

    assert b"4111" not in sealed
    assert is_encrypted(sealed)
    assert sealed != encrypt_arguments(codec, "pay", ARGUMENTS)
    assert decrypt_arguments(codec, "pay", sealed) == ARGUMENTS
    assert decrypt_result(codec, "q:1@2", encrypt_result(codec, "q:1@2", b"7")) == b"7"
    assert encrypt_result(codec, "q:1@2", b"") == b""


def test_values_that_are_not_encrypted_stay_as_they_are(codec: Encrypted) -> None:
    assert decrypt_arguments(codec, "pay", ARGUMENTS) == ARGUMENTS
    assert decrypt_result(None, None, b'"x"') == b'"x"'
    assert readable(ARGUMENTS) == ARGUMENTS


@pytest.mark.parametrize(
    "value",
    ["rota:encrypted:x", ["rota:encrypted:x"], {"rota:encrypted:": ['say "rota:encrypted:', "rota:encrypted:"]}],
)
def test_a_plain_result_is_never_read_as_an_encrypted_one(value: Any) -> None:
    stored = encode_result(value)

    assert decrypt_result(None, "q:1@2", stored) == readable(stored) == stored
    assert b'"rota:encrypted:' not in stored
    assert decode_result(stored) == value


def test_results_are_filled_into_encrypted_arguments(codec: Encrypted) -> None:
    sealed = encrypt_arguments(
        codec, "join", b'["rota.result.a.1","x",{"b":"rota.result.a.2"}]', ["rota.result.a.1", "rota.result.a.2"]
    )
    filled = sealed.replace(b'"rota.result.a.1"', encrypt_result(codec, "q:1@2", b'[1,"y"]'))
    filled = filled.replace(b'"rota.result.a.2"', b"null")

    assert decrypt_arguments(codec, "join", filled) == b'[[1,"y"],"x",{"b":null}]'
    assert decrypt_arguments(codec, "join", sealed) == b'["rota.result.a.1","x",{"b":"rota.result.a.2"}]'


def test_the_first_key_encrypts_and_all_decrypt() -> None:
    old, new = new_key(), new_key()
    sealed = encrypt_arguments(Encrypted([old]), "pay", ARGUMENTS)

    assert decrypt_arguments(Encrypted([new, old]), "pay", sealed) == ARGUMENTS
    with pytest.raises(Undecryptable, match="does not have"):
        decrypt_arguments(Encrypted([new]), "pay", sealed)
    with pytest.raises(Undecryptable, match="set ROTA_ENCRYPTION_KEYS"):
        decrypt_arguments(None, "pay", sealed)


def test_changed_and_copied_values_are_refused(codec: Encrypted) -> None:
    sealed = encrypt_arguments(codec, "pay", ARGUMENTS)
    start, key_id, payload, bound = sealed.decode().rsplit(":", 3)
    changed = f"{start}:{key_id}:{'B' if payload[0] == 'A' else 'A'}{payload[1:]}:{bound}".encode()
    renamed = sealed.replace(b"arguments of pay", b"arguments of refund")

    for value, task in ((changed, "pay"), (sealed, "refund"), (renamed, "refund"), (sealed[:60], "pay")):
        with pytest.raises(Undecryptable):
            decrypt_arguments(codec, task, value)
    with pytest.raises(Undecryptable, match="copied"):
        decrypt_result(codec, "q:1@2", encrypt_result(codec, "q:3@4", b"7"))
    with pytest.raises(Undecryptable):
        decrypt_result(codec, "q:1@2", sealed)


@pytest.mark.parametrize("codec_is_set", [True, False])
def test_values_that_a_list_cut_are_refused(codec: Encrypted, codec_is_set: bool) -> None:
    long = b'["%b","rota.result.a.1"]' % (b"x" * 3_000)
    step = encrypt_arguments(codec, "join", long, ["rota.result.a.1"])
    failed = b'[{"type":"E"},{"id":"1"},%b]' % encrypt_arguments(codec, "join", long)
    reader = codec if codec_is_set else None

    for task, value in (("join", step), ("join.on_failure", failed)):
        for length in (60, 2_001, len(value) - 1):
            with pytest.raises(Undecryptable):
                decrypt_arguments(reader, task, value[:length])
    for value in (b'["rota:encrypted:x"]', b'["rota:encrypted:x",1]', b'["rota:encrypted:x",{}]'):
        with pytest.raises(Undecryptable):
            decrypt_arguments(reader, "join", value)


def test_stored_responses_are_encrypted_and_bound_to_their_name(codec: Encrypted) -> None:
    sealed = encrypt_response(codec, "a", b"{}")

    assert decrypt_response(codec, "a", sealed) == b"{}"
    assert decrypt_response(codec, "a", b"{}") == b"{}"
    for reader, name in ((codec, "b"), (None, "a")):
        with pytest.raises(Undecryptable):
            decrypt_response(reader, name, sealed)


def test_an_encrypted_value_is_shown_as_such(codec: Encrypted) -> None:
    sealed = encrypt_arguments(codec, "pay", ARGUMENTS)

    assert readable(sealed) == f'{{"encrypted":"with key {sealed.decode().split(":")[3]}"}}'.encode()
    assert readable(sealed[:40]) == readable(sealed)  # a list may cut it


@pytest.mark.parametrize("keys", [[], "key", ["short"], ["ä" * 43], [""]])
def test_keys_that_cannot_be_used_are_refused(keys: list[str]) -> None:
    with pytest.raises(ConfigurationError, match="rota encryption-key"):
        Encrypted(keys)


def test_a_key_is_not_shown() -> None:
    key = new_key()

    assert key[:8] not in repr(Encrypted([key]))


def test_a_missing_extra_names_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)

    with pytest.raises(ConfigurationError, match=r"install .*encryption\]"):
        Encrypted([new_key()])
