"""Fault injection: lets the next responses of an API fail.

A test uses `Faults`, which checks its arguments and passes them on. `FaultRules` has the armed faults of a node, and
`FaultyDispatch` applies them. The two may live in different processes, so they exchange plain data (`FaultSpec`).
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import count
from typing import Any, Final, Literal

from ottla.broker.network.dispatch import Api, Dispatch
from ottla.broker.network.request import AfterWrite, Answer, Close, DelayedResponse, Request
from ottla.wire import frames
from ottla.wire.errors import ErrorCode

__all__ = ["Fault", "FaultRules", "FaultSpec", "Faults", "FaultyDispatch"]

Kind = Literal["fail", "delay", "drop", "close"]
Perform = Callable[..., Any]
"""Sends a command to the node and returns its answer: `perform("hits", fault_id=3)`."""

ANY_API: Final = "*"
_PRODUCE_KEY: Final = 0
_REASON: Final = "a fault was asked for"


@dataclass(frozen=True)
class FaultSpec:
    """One fault as plain data. `times` None means: until it is removed."""

    kind: Kind
    api: str
    times: int | None = 1
    error_code: int = 0
    ms: int = 0
    after: bool = False


# --- the test's end ---------------------------------------------------------------------------------------------------


class Fault:
    """A fault that is armed or was applied."""

    def __init__(self, fault_id: int, spec: FaultSpec, perform: Perform) -> None:
        self.spec = spec
        self._fault_id = fault_id
        self._perform = perform

    def __repr__(self) -> str:
        return f"<Fault {self.spec.kind} {self.spec.api} times={self.spec.times}>"

    @property
    def hits(self) -> int:
        """How often it was applied."""
        return int(self._perform("hits", fault_id=self._fault_id))

    def remove(self) -> None:
        """Disarm the fault."""
        self._perform("remove_fault", fault_id=self._fault_id)


class Faults:
    """Lets the next responses fail. `api` is a name such as "Produce", or "*" for any; `times` None means for ever.

    With `after`, the request is carried out first, and only its response fails: the client cannot know. Faults of one
    API are applied in the order in which they were added. They end with the broker.
    """

    def __init__(self, perform: Perform) -> None:
        self._perform = perform
        self._ids = count()
        """They go on over restarts, in another process, too."""

    def fail(self, api: str, error: str | int, *, times: int | None = 1, after: bool = False) -> Fault:
        """Respond with an error, given by its name ("NOT_LEADER_OR_FOLLOWER") or code."""
        return self._add(FaultSpec("fail", _api(api), _times(times), error_code=_error_code(error), after=after))

    def delay(self, api: str, ms: int, *, times: int | None = 1) -> Fault:
        """Send the response `ms` milliseconds of real time later. Later responses on the connection wait, too."""
        if ms < 0:
            raise ValueError(f"ms={ms}: a delay cannot be negative")
        return self._add(FaultSpec("delay", _api(api), _times(times), ms=ms, after=True))

    def drop(self, api: str, *, times: int | None = 1, after: bool = False) -> Fault:
        """Send no response; the connection stays open until the client closes it."""
        return self._add(FaultSpec("drop", _api(api), _times(times), after=after))

    def close(self, api: str, *, times: int | None = 1, after: bool = False) -> Fault:
        """Close the connection instead of responding."""
        return self._add(FaultSpec("close", _api(api), _times(times), after=after))

    def clear(self) -> None:
        """Remove all faults."""
        self._perform("clear_faults")

    def _add(self, spec: FaultSpec) -> Fault:
        fault_id = next(self._ids)
        self._perform("add_fault", fault_id=fault_id, spec=asdict(spec))
        return Fault(fault_id, spec, self._perform)


def _api(name: str) -> str:
    known = frames.api_names().values()
    if name != ANY_API and name not in known:
        raise ValueError(f"unknown API {name!r}{_nearest(name, known)}")
    return name


def _times(times: int | None) -> int | None:
    if times is not None and times < 1:
        raise ValueError(f"times={times}: a fault occurs at least once; None means always")
    return times


def _error_code(error: str | int) -> int:
    if isinstance(error, str):
        if error not in ErrorCode.__members__:
            raise ValueError(f"unknown error {error!r}{_nearest(error, ErrorCode.__members__)}")
        return int(ErrorCode[error])
    if error not in ErrorCode.__members__.values():
        raise ValueError(f"unknown error code {error}")
    return int(error)


def _nearest(name: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {found[0]}?" if found else ""


# --- the node's end ---------------------------------------------------------------------------------------------------


class FaultRules:
    """The armed faults of a node."""

    def __init__(self) -> None:
        self._specs: dict[int, FaultSpec] = {}
        self._hits: dict[int, int] = {}
        self.held: list[Request] = []
        """Requests whose responses are withheld."""

    def add(self, fault_id: int, spec: Mapping[str, Any]) -> None:
        self._specs[fault_id] = FaultSpec(**spec)
        self._hits[fault_id] = 0

    def hits(self, fault_id: int) -> int:
        return self._hits.get(fault_id, 0)  # of a fault that ended with another process

    def remove(self, fault_id: int) -> None:
        self._specs.pop(fault_id, None)

    def clear(self) -> None:
        self._specs.clear()

    def take(self, api: str) -> FaultSpec | None:
        """The fault to apply now, if any."""
        for fault_id, spec in self._specs.items():
            if spec.api in (ANY_API, api):
                self._hits[fault_id] += 1
                if self._hits[fault_id] == spec.times:
                    del self._specs[fault_id]
                return spec
        return None

    def let_go(self) -> None:
        """Close the connections of withheld responses: a node that stops would wait for them."""
        held, self.held = self.held, []
        for request in held:
            request.connection.close(_REASON)


class FaultyDispatch(Dispatch):
    """Calls handlers as usual, and applies faults."""

    def __init__(self, rules: FaultRules, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - as of Dispatch
        super().__init__(*arguments, **options)
        self._rules = rules

    def call(self, api: Api, request: Request) -> Answer:
        spec = self._rules.take(api.name)
        if spec is None:
            return super().call(api, request)
        if spec.after:
            return _then(super().call(api, request), request, lambda message: self._strike(spec, api, request, message))
        return self._strike(spec, api, request, None)

    def _strike(self, spec: FaultSpec, api: Api, request: Request, message: object) -> Answer:
        if spec.kind == "close":
            raise Close(_REASON, None)
        if spec.kind == "fail":
            return None if _is_unanswered(request) else api.refuse(request, spec.error_code, _REASON)
        later = DelayedResponse()
        self._rules.held.append(request)
        if spec.kind == "delay":
            asyncio.get_running_loop().call_later(spec.ms / 1000, self._release, request, later, message)
        return later

    def _release(self, request: Request, later: DelayedResponse, message: object) -> None:
        if request in self._rules.held:
            self._rules.held.remove(request)
        later.complete(message)


def _is_unanswered(request: Request) -> bool:
    """Whether the client expects no response: a Produce with acks=0."""
    return request.api_key == _PRODUCE_KEY and request.body.acks == 0


def _then(answer: Answer, request: Request, change: Callable[[object], Answer]) -> Answer:
    """The answer, changed once it is complete."""
    if isinstance(answer, AfterWrite):
        return AfterWrite(lambda: _then(answer.finish(), request, change))
    if not isinstance(answer, DelayedResponse):
        return change(answer)
    changed = DelayedResponse()
    changed.on_cancel = answer.cancel

    def pass_on(message: object) -> None:
        try:
            result = change(message)
        except Close as reason:
            request.connection.close(reason)
            return
        if isinstance(result, DelayedResponse):
            result.deliver_to(changed.complete)
        else:
            changed.complete(result)

    answer.deliver_to(pass_on)
    return changed
