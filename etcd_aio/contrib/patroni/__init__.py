"""Patroni: a DCS that keeps the state of a cluster in etcd over gRPC, on the blocking client.

    python -m etcd_aio.contrib.patroni install      once, in the environment of Patroni

    etcd3aio:                                       in patroni.yml, in place of `etcd3:`
      hosts: m1:2379,m2:2379,m3:2379

See the page "Patroni" of the documentation.
"""
