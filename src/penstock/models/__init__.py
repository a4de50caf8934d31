"""Models as data: parameters on a topic, checked before they are used, the last good one kept.

===========  =====================================================================================
version      one version of a model as a record: parameters, their shape, a hash, where from
serving      which version a service uses, and which it has refused
drift        whether values still come as they did in training
===========  =====================================================================================
"""

from penstock.models.drift import Drift, Reference, reference_of
from penstock.models.serving import Models, Refusal, Served
from penstock.models.version import ModelVersion, opened, sealed, shape_of

__all__ = [
    "Drift",
    "ModelVersion",
    "Models",
    "Reference",
    "Refusal",
    "Served",
    "opened",
    "reference_of",
    "sealed",
    "shape_of",
]
