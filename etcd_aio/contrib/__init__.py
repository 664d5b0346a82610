"""Contrib: etcd_aio in other projects. A module needs the project that it is for; the client imports none of them."""
