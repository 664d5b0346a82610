"""The grpclib engine: the reference for the native one. It needs grpclib and h2."""
