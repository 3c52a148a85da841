"""Unknown worlds: learning from a simulator or from one trajectory, with memory for the pairs alone."""

from robustmdp.learning.baselines import MultilevelQLearning as MultilevelQLearning
from robustmdp.learning.baselines import PlugIn as PlugIn
from robustmdp.learning.behaviour import EpsilonGreedy as EpsilonGreedy
from robustmdp.learning.evaluation import LearnedWorstCase as LearnedWorstCase
from robustmdp.learning.evaluation import learn_value as learn_value
from robustmdp.learning.evaluation import learn_worst_case as learn_worst_case
from robustmdp.learning.generative import GenerativeQLearning as GenerativeQLearning
from robustmdp.learning.markovian import MarkovianQLearning as MarkovianQLearning
from robustmdp.learning.runnable import run_many as run_many
from robustmdp.learning.running import resume as resume
from robustmdp.learning.runs import Progress as Progress
