// Learners as objects: what the loops over worlds know of them.
#pragma once

#include "world.hpp"

#include <algorithm>
#include <optional>

namespace robustmdp {

class Learner {
public:
    virtual ~Learner() = default;

    virtual void absorb(int64_t first, const Transitions& seen) = 0;

    const LearnerState& tables() const { return tables_; }

    // Epsilon-greedy from one uniform number; ties, also among what nobody has tried, go to any of them.
    int64_t choose(int64_t replication, int64_t state, double u, double epsilon) const {
        const int64_t first = tables_.state_ptr[state], size = tables_.state_ptr[state + 1] - first;
        // The same number says whether to explore and, rescaled, what.
        if (u < epsilon)
            return first + std::min(static_cast<int64_t>(u / epsilon * static_cast<double>(size)), size - 1);
        const double* row = values_ + replication * tables_.n_pairs + first;
        const int64_t best = tables_.greedy[replication * tables_.n_states + state] - first;
        int64_t ties = 0;
        for (int64_t a = 0; a < size; ++a) ties += row[a] == row[best];
        if (ties <= 1) return first + best;
        int64_t wanted =
            std::min(static_cast<int64_t>((u - epsilon) / (1.0 - epsilon) * static_cast<double>(ties)), ties - 1);
        for (int64_t a = 0; a < size; ++a)
            if (row[a] == row[best] && wanted-- == 0) return first + a;
        return first + best;
    }

protected:
    // Greedy actions are greedy for `values`.
    Learner(const LearnerSettings& settings, const LearnerState& tables, const double* values)
        : settings_(settings), tables_(tables), values_(values) {}

    const LearnerSettings settings_;
    const LearnerState tables_;

private:
    const double* const values_;
};

// Who chooses the actions in a world that the core draws from: fixed probabilities (none: uniform), or epsilon-greedy.
struct Behaviour {
    const int64_t* state_ptr;
    AliasTable probabilities;
    std::optional<Steps> epsilon;

    int64_t draw(int64_t state, double u) const {
        const int64_t first = state_ptr[state], size = state_ptr[state + 1] - first;
        if (!probabilities.empty()) return probabilities.draw(first, size, u);
        return first + static_cast<int64_t>(u * static_cast<double>(size));
    }
};

// Act and learn in turn.
template <class Sampler>
void learn_online(Learner& learner, const World<Sampler>& world, const Behaviour& behaviour, int64_t first,
                  int64_t count, int64_t start, int64_t* now) {
    const int64_t block = behaviour.epsilon ? 1 : 64, cells = block * world.replications();
    std::vector<int32_t> states(cells), pairs(cells), following(cells);
    std::vector<double> rewards(cells);
    for (int64_t step = 0; step < count; step += block) {
        const int64_t length = count - step < block ? count - step : block;
        const Transitions room{states.data(), pairs.data(), rewards.data(), following.data(), length};
        if (behaviour.epsilon) {
            const double epsilon = (*behaviour.epsilon)(first + step);
            world.follow_policy(first + step, start, now, room,
                                [&](int64_t r, int64_t s, double u) { return learner.choose(r, s, u, epsilon); });
        } else {
            world.follow_policy(first + step, start, now, room,
                                [&](int64_t, int64_t s, double u) { return behaviour.draw(s, u); });
        }
        learner.absorb(first + step, room);
    }
}

}  // namespace robustmdp
