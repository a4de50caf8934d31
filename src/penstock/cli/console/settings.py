"""The settings of the run, each with where its value comes from; secrets stay hidden."""

from collections.abc import Mapping
from typing import Any

from penstock.core.settings.configuration import Resolved
from penstock.core.settings.keys import shown

__all__ = ["settings_document"]


def settings_document(settings: Mapping[str, Resolved]) -> list[dict[str, Any]]:
    """Return all settings, by name."""
    return [
        {
            "key": name,
            "value": shown(found.value),
            "layer": found.layer,
            "where": found.where,
            "overrode": [
                {"value": shown(each.value), "where": each.where} for each in found.overrode
            ],
            "help": found.key.help,
        }
        for name, found in settings.items()
    ]
