"""A machine that wears out, with failure rates that were only estimated: what may trusting them cost?"""

from __future__ import annotations

import robustmdp as rm

RADII = (0.0, 0.02, 0.05, 0.1, 0.2)
CHOSEN = 0.2


def main() -> None:
    """Solve with and without robustness, and compare both policies as nature gets more room."""
    machine = rm.problems.machine_replacement()
    nominal = rm.solve(machine, rm.Nominal())
    robust = rm.solve(machine, rm.Constrained(rm.KL(), CHOSEN))

    print("A machine ages, fails and can be kept, repaired or replaced. Its failure rates are estimates.")
    print(
        "Discounted cost from new, if the truth is the worst model within a Kullback-Leibler radius of the estimate:\n"
    )
    print(f"{'radius':>8}{'nominal policy':>18}{'robust policy':>18}{'best possible':>18}")
    for radius in RADII:
        doubt = rm.Constrained(rm.KL(), radius)
        worst = [rm.evaluate(machine, policy, doubt).value[0] for policy in (nominal.policy, robust.policy)]
        best = rm.solve(machine, doubt).value[0]
        print(f"{radius:>8g}" + "".join(f"{-value:>18.2f}" for value in (*worst, best)))

    at_risk = rm.evaluate(machine, nominal.policy, rm.Constrained(rm.KL(), CHOSEN)).value[0]
    if_right = rm.evaluate(machine, robust.policy, rm.Nominal()).value[0]
    print(f"\nAt radius {CHOSEN:g} the nominal policy's cost rises from {-nominal.value[0]:.2f} to {-at_risk:.2f};")
    print(f"the robust policy's is at most {-robust.lower[0]:.2f}, certified to {robust.error_bound:.0e}.")
    print(f"If the estimate was right after all, robustness costs {nominal.value[0] - if_right:.2f}.\n")
    print(f"{'':>10}{'nominal':>10}{'robust':>10}")
    for state in range(machine.n_states):
        actions = [machine.action_name(int(policy[state])) for policy in (nominal.policy, robust.policy)]
        mark = "   <- differs" if actions[0] != actions[1] else ""
        print(f"{machine.state_name(state):>10}{actions[0]:>10}{actions[1]:>10}{mark}")
    print(f"\n{robust}")


if __name__ == "__main__":
    main()
