"""The version of this library; the one place where it stands. The build reads it from here."""

__version__ = "0.1.0"
