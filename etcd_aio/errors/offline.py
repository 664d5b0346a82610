"""Errors of reading the files of etcd without a server."""

from etcd_aio.errors.base import EtcdError


class DatabaseFileError(EtcdError):
    """A file cannot be read as a database of etcd: it is another file, cut short or damaged, or changed meanwhile."""

    default_message = "the file is no database of etcd, or is damaged"


class DatabaseFileInUseError(DatabaseFileError):
    """Another process has the file locked, as a running etcd has its database. Save a snapshot instead."""

    default_message = "another process has the file locked, as a running etcd has its database; save a snapshot instead"
    retryable = True
