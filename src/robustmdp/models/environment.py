"""A Gymnasium environment that plays a model, or nature's worst case of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
import numpy.typing as npt

from robustmdp import _checks
from robustmdp._arrays import FloatArray
from robustmdp.models.labels import distribution

if TYPE_CHECKING:
    from robustmdp.models import MDP


class ModelEnvironment(gymnasium.Env):  # type: ignore[misc]  # Gymnasium may not be installed
    """s' ~ P(.|s, a) of an MDP, episode after episode, with nature's `penalty` (S, A); see `rm.to_gymnasium`."""

    def __init__(
        self, mdp: MDP, penalty: FloatArray | None, start: npt.ArrayLike | None, max_steps: int | None
    ) -> None:
        self.mdp = mdp
        self.penalty = penalty
        self.max_steps = None if max_steps is None else _checks.positive_integer("max_steps", max_steps)
        self.observation_space = gymnasium.spaces.Discrete(mdp.n_states)
        self.action_space = gymnasium.spaces.Discrete(mdp.n_actions)
        self.metadata = {
            "render_modes": [],
            "discount": mdp.discount,
            "state_names": mdp.state_names,
            "action_names": mdp.action_names,
        }
        # The spec lets `gymnasium.make_vec` and the environment checker make the same environment again.
        self.spec = gymnasium.envs.registration.EnvSpec(
            id="robustmdp/Model-v0" if penalty is None else "robustmdp/WorstCase-v0",
            entry_point=ModelEnvironment,
            kwargs={"mdp": mdp, "penalty": penalty, "start": start, "max_steps": max_steps},
        )
        first: npt.ArrayLike = 0 if mdp.initial is None else mdp.initial
        self._start = np.cumsum(distribution(mdp, first if start is None else start, "start"))
        self._state: int | None = None
        self._steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.int64, dict[str, Any]]:
        """Begin an episode; `seed` restarts the random numbers, `options` are not used."""
        super().reset(seed=seed)
        self._steps = 0
        self._state = int(np.searchsorted(self._start, self.np_random.random() * self._start[-1], side="right"))
        return np.int64(self._state), self._info(self._state)

    def step(self, action: Any) -> tuple[np.int64, float, bool, bool, dict[str, Any]]:
        """Take an action: (state, reward, terminated, truncated, info)."""
        state = self._state
        if state is None:
            raise gymnasium.error.ResetNeeded("reset() must be called before the first step and after an episode's end")
        if not self.action_space.contains(action):
            raise gymnasium.error.InvalidAction(
                f"action must be a whole number in 0..{self.mdp.n_actions - 1}: got {action!r}"
            )
        reward, following, terminated = self.mdp.sample(state, int(action), self.np_random)
        self._steps += 1
        truncated = not terminated and self._steps == self.max_steps
        self._state = None if terminated or truncated else following
        info = self._info(following)
        if self.penalty is not None:
            info["penalty"] = float(self.penalty[state, int(action)])
        return np.int64(following), reward, terminated, truncated, info

    def _info(self, state: int) -> dict[str, Any]:
        first, last = self.mdp.state_ptr[state : state + 2]
        mask = np.zeros(self.mdp.n_actions, np.int8)
        mask[self.mdp.actions[first:last]] = 1
        return {"action_mask": mask, "state_name": self.mdp.state_name(state)}
