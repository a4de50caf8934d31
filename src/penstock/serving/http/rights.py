"""Who may use what: the roles that the application declares, and those that a caller has."""

from http import HTTPStatus

from starlette.types import Scope

from penstock.core.graph.gateway import Gateway
from penstock.serving.http.guard import caller_of, refused_access
from penstock.serving.http.problems import Problem

__all__ = ["require_right"]


def require_right(scope: Scope, gateway: Gateway, name: str) -> None:
    """Raise a Problem ``caller.not-allowed``, with an audit line, unless the caller may use it."""
    caller = caller_of(scope)
    if caller.roles is None or not gateway.roles:
        return
    if any(gateway.may(role, name) for role in caller.roles):
        return
    problem = Problem(
        HTTPStatus.FORBIDDEN, "caller.not-allowed", f"no role of this caller may use {name!r}"
    )
    refused_access(scope, problem)
    raise problem
