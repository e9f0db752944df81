"""Finding the user's `Rota` by the path given on a command line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rota import ConfigurationError
from rota.worker.app_loader import load_app

GOOD = "from rota import Rota\nrota = Rota('redis://h', namespace='{name}')\nsame = rota\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to put modules into, which are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_module_in_the_working_directory_is_found(project: Path) -> None:
    (project / "shop_tasks.py").write_text(GOOD.format(name="flat"))
    (project / "shop_package").mkdir()
    (project / "shop_package" / "jobs.py").write_text(GOOD.format(name="deep"))

    assert load_app("shop_tasks:rota").namespace == "flat"
    assert load_app("shop_tasks").namespace == "flat", "one object under two names is one"
    assert load_app("shop_package.jobs:rota").namespace == "deep"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "write it as tasks:rota"),
        (":rota", "write it as tasks:rota"),
        ("shop.py", "write it as shop:rota"),
        ("a/b.py:rota", "write it as a.b:rota"),
        ("shop_missing:rota", "no module 'shop_missing' in"),
        ("shop_missing.tasks:rota", "no module 'shop_missing' in"),
        ("shop_empty", "has no Rota at all"),
        ("shop_empty:rota", "should name a Rota, but there is none"),
        ("shop_two", "shop_two:one, shop_two:two"),
        ("shop_two:number", "it is a int; the module has shop_two:one"),
        ("shop_broken:rota", "shop_broken cannot be imported: ZeroDivisionError: division by zero"),
        ("shop_syntax:rota", "shop_syntax cannot be imported: SyntaxError"),
        ("shop_needy:rota", "shop_needy cannot be imported: it needs shop, which is not installed"),
        ("shop_conflict:rota", "TaskConflict: task 'same' is already declared"),
        ("..up:rota", "cannot be imported|no module"),
        ("shop_two:one.two", "there is none"),
    ],
)
def test_an_app_that_cannot_be_loaded_is_reported_with_what_to_do(project: Path, path: str, message: str) -> None:
    header = "from rota import Rota\n"
    (project / "shop_empty.py").write_text("")
    (project / "shop_two.py").write_text(header + "one, two, number = Rota('redis://h'), Rota('redis://h'), 5")
    (project / "shop_broken.py").write_text("1 / 0")
    (project / "shop_syntax.py").write_text("def f(:")
    (project / "shop_needy.py").write_text("import shop")
    (project / "shop_conflict.py").write_text(
        header + "rota = Rota('redis://h')\nfor f in (lambda: 1, print): rota.task(name='same')(f)"
    )

    with pytest.raises(ConfigurationError, match=message):
        load_app(path)
