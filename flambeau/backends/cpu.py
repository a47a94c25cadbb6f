"""`torch.backends.cpu`: the instructions that kernels are made of."""


def get_cpu_capability() -> str:
    """"AVX512", "AVX2" or "DEFAULT", by the widest vectors that this CPU has."""
    from flambeau.codegen.target import host

    machine = host()
    if machine.architecture != "x86_64":
        return "DEFAULT"
    return {64: "AVX512", 32: "AVX2"}.get(machine.vector_bytes, "DEFAULT")
