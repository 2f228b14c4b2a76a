"""Says which primitives with a rule for the CPU no program has."""

import jax

from . import describe, primitives_of, programs, with_rules


def main():
    covered = set()
    for name, (function, arguments) in programs().items():
        try:
            covered |= primitives_of(jax.make_jaxpr(function)(*arguments).jaxpr)
        except Exception as error:
            print(f"{name}: {describe(error)}")
    wanted = with_rules()
    print(
        f"{len(wanted & covered)} of {len(wanted)} primitives; without a program: {' '.join(sorted(wanted - covered))}"
    )


main()
