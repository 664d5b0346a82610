"""Missing: the error of a module whose framework is not installed."""


def missing(module: str, package: str, error: ModuleNotFoundError, extra: str = "") -> ModuleNotFoundError:
    """The error that says what to install.

    Args:
        module: that needs it.
        package: what it needs.
        error: of the import.
        extra: the extra of `etcd_aio` that installs it; empty if there is none.
    """
    what = f"'etcd_aio[{extra}]'" if extra else package
    return ModuleNotFoundError(f"{module} needs {package}: pip install {what}", name=error.name)
