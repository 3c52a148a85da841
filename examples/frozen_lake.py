"""FrozenLake 8x8 when the ice may be more slippery than the model says: what does each policy lose in the worst case?"""

from __future__ import annotations

import robustmdp as rm

RADII = (0.0, 0.01, 0.03, 0.1)
ARROWS = "←↓→↑"
SIZE = 8


def main() -> None:
    """Solve with and without robustness, and compare both policies as nature gets more room."""
    lake = rm.MDP.from_gymnasium("FrozenLake8x8-v1", discount=0.99)
    nominal = rm.solve(lake, rm.Nominal())
    robust = rm.solve(lake, rm.Constrained(rm.KL(), 0.03))

    print("FrozenLake 8x8: reach the goal in the far corner without falling into a hole.")
    print("The model says that a step goes as meant with probability 1/3 and to either side with 1/3.\n")
    print("The chance of success, discounted, if the truth is the worst model within a KL radius of that one:\n")
    print(f"{'radius':>8}{'nominal policy':>18}{'robust policy':>18}{'best possible':>18}")
    for radius in RADII:
        doubt = rm.Constrained(rm.KL(), radius)
        best = rm.solve(lake, doubt)
        values = [rm.evaluate(lake, policy, doubt).value[0] for policy in (nominal.policy, robust.policy)]
        print(f"{radius:>8g}" + "".join(f"{value:>18.4f}" for value in (*values, best.value[0])))

    at_risk = rm.evaluate(lake, nominal.policy, rm.Constrained(rm.KL(), 0.03)).value[0]
    price = nominal.value[0] - rm.evaluate(lake, robust.policy, rm.Nominal()).value[0]
    print(f"\nAt radius 0.03 the nominal policy drops from {nominal.value[0]:.3f} to {at_risk:.3f},")
    print(f"the robust one keeps {robust.value[0]:.3f} (certified to {robust.error_bound:.0e}).")
    print(f"If the model was right after all, robustness costs {price:.3f}.\n")
    print("Where the two policies differ (nominal, then robust):\n")
    for row in range(SIZE):
        states = range(row * SIZE, (row + 1) * SIZE)
        print("   ".join("".join(ARROWS[policy[s]] for s in states) for policy in (nominal.policy, robust.policy)))
    print(f"\n{robust}")


if __name__ == "__main__":
    main()
