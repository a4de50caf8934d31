"""Questions that one part asks another, and their answers.

``app.questions`` declares them. ``ask`` and ``answer`` make outputs of a service or an actor.
"""

from penstock.core.graph.questions import ReplyTo, Unanswered, answer, ask

__all__ = ["ReplyTo", "Unanswered", "answer", "ask"]
