"""Logging in with SASL: `Plain` and `Scram`; `ottla.client.oauth` has the third way."""

from __future__ import annotations

from ottla.security.sasl_client import Exchange, Plain, Sasl, Scram, mechanism_named

__all__ = ["Exchange", "Plain", "Sasl", "Scram", "mechanism_named"]
