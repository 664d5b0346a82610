"""The alarm that interrupts blocking calls."""

from tests.support.alarms import alarm as alarm
