"""Failures of the network and of HTTP itself. Errors that a server reports are read in `models/openai/errors.py`."""

from __future__ import annotations

import ssl

from shoal.models.base import FailureKind, ModelFailure

MAX_TEXT_CHARS = 300


class NotConnected(ConnectionError):
    """No connection could be opened: refused, no such name, no route."""


def shorten_failure_text(text: str) -> str:
    """Return the text on one line, at most MAX_TEXT_CHARS long: it is journaled and shown to users."""
    text = " ".join(text.split())
    return text if len(text) <= MAX_TEXT_CHARS else text[: MAX_TEXT_CHARS - 1] + "…"


def report_timeout(seconds: float) -> ModelFailure:
    return ModelFailure(FailureKind.TRANSIENT, f"no answer within {seconds:g} s")


def report_bad_http(why: str, received: bytes) -> ModelFailure:
    """Report a reply that is not HTTP: from a broken proxy, or from a server of another kind."""
    text = shorten_failure_text(f"the reply cannot be read ({why}): {received[:100].decode(errors='replace')!r}")
    return ModelFailure(FailureKind.TRANSIENT, text)


def report_oversize(received_bytes: int) -> ModelFailure:
    """Report a reply that is too large. It is fatal, as it would be as large the next time and be paid for again."""
    text = f"the reply was cut at {received_bytes / 1e6:.1f} MB: no answer of a model is as long"
    return ModelFailure(FailureKind.FATAL, text)


def report_unreachable(error: Exception) -> ModelFailure:
    """Report an error of the network: a certificate that is not trusted, no connection, or one that was lost."""
    if isinstance(error, ssl.SSLCertVerificationError):
        text = f"the server's certificate cannot be trusted: {getattr(error, 'verify_message', error)}"
        return ModelFailure(FailureKind.ADDRESS, shorten_failure_text(text))
    if isinstance(error, ssl.SSLError):
        said = (
            f"it does not speak TLS as expected ({getattr(error, 'reason', None) or error}); is it http:// or https://?"
        )
        kind = FailureKind.UNREACHABLE
    else:
        said = str(error) or type(error).__name__
        kind = FailureKind.UNREACHABLE if isinstance(error, NotConnected) else FailureKind.TRANSIENT
    return ModelFailure(kind, shorten_failure_text(f"the server cannot be reached: {said}"))
