"""Missing: the error of a module whose framework is not installed."""


def missing(module: str, package: str, error: ModuleNotFoundError) -> ModuleNotFoundError:
    """The error that says what to install.

    Args:
        module: that needs it.
        package: what it needs.
        error: of the import.
    """
    text = f"{module} needs {package}: pip install {package}"
    return ModuleNotFoundError(text, name=error.name)
