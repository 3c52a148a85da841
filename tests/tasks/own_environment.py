import gymnasium as gym

import robustmdp as rm


class Shop(gym.Env):
    observation_space, action_space = gym.spaces.Discrete(6), gym.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.stock = 0
        return self.stock, {}

    def step(self, order):
        have = min(5, self.stock + int(order))
        sold = min(have, int(self.np_random.integers(4)))
        self.stock = have - sold
        return self.stock, 3.0 * sold - order - 0.2 * have, False, False, {}


doubt = rm.Penalized(rm.ChiSquare(), weight=10.0)
learned = rm.MarkovianQLearning(doubt).run(Shop(), 1_000_000, confidence=0.95, discount=0.9, reward_range=(-3.0, 9.0))
print(learned.summary())
learned.plot().savefig("shop.png")
