"""The page of what arrives exactly is what the tests hold."""

from trial.fidelity import DOCUMENT, fidelity


def test_the_page_is_current() -> None:
    assert DOCUMENT.read_text() == fidelity(), "PYTHONPATH=.:tests python -m trial.fidelity writes it"
