"""`torch.backends.cpu`."""


def get_cpu_capability() -> str:
    """Which vector instructions compiled code may use."""
    import platform

    return "AVX2" if platform.machine() in ("x86_64", "AMD64") else "DEFAULT"
