"""From a user's module to the graph of one microbatch: Capture in capture.py, which needs torch. configs/models uses it, too."""

from .errors import Unexportable as Unexportable
