"""What is wrong with security settings, and with a login."""

from __future__ import annotations

__all__ = ["LoginRefused", "SecuritySettingError"]


class SecuritySettingError(ValueError):
    """A setting that cannot be used; the text names it and says what to do. It never holds a secret."""


class LoginRefused(Exception):
    """A login fails. `reason` is for the log of this side; the other side is told `told`, which says less."""

    def __init__(self, reason: str, told: str | None = None, *, user: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.told = told
        self.user = user
        """The name that was given, if it was read: it may be nobody's."""
