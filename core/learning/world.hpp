// A known world to learn in: its transitions, drawn in constant time.
#pragma once

#include "alias.hpp"
#include "state.hpp"
#include "streams.hpp"

namespace robustmdp {

// Room for transitions of all replications, entry [step * replications + r].
struct Transitions {
    int32_t* states;
    int32_t* pairs;
    double* rewards;
    int32_t* following;
    int64_t length;

    Experience seen() const { return {states, pairs, rewards, following, length}; }

    void put(int64_t at, const Transition& seen) const {
        states[at] = static_cast<int32_t>(seen.state);
        pairs[at] = static_cast<int32_t>(seen.pair);
        rewards[at] = seen.reward;
        following[at] = static_cast<int32_t>(seen.successor);
    }
};

class World {
public:
    World(const Model& model, std::vector<uint64_t> keys) : model_(model), keys_(std::move(keys)) {
        alias_.fill(model.indptr, model.n_pairs, model.probabilities);
    }

    int64_t replications() const { return static_cast<int64_t>(keys_.size()); }
    int64_t n_pairs() const { return model_.n_pairs; }
    double number(int64_t replication, int64_t position) const { return uniform(keys_[replication], position); }

    // What a pair leads to, from one uniform number.
    Transition draw(int64_t state, int64_t pair, double u) const {
        const int64_t first = model_.indptr[pair];
        const int64_t entry = alias_.draw(first, model_.indptr[pair + 1] - first, u);
        return {state, pair, model_.indices[entry], model_.rewards[model_.rewards_on_successors ? entry : pair]};
    }

    // One outcome of each pair in turn, round after round; transition `first` belongs to pair `first` mod pairs.
    void sample_all_pairs(int64_t first, const Transitions& room) const {
        int64_t pair = first % model_.n_pairs, state = 0;
        while (model_.state_ptr[state + 1] <= pair) ++state;
        for (int64_t step = 0; step < room.length; ++step) {
            for (int64_t r = 0; r < replications(); ++r)
                room.put(step * replications() + r, draw(state, pair, uniform(keys_[r], first + step)));
            if (++pair == model_.n_pairs) pair = state = 0;
            if (pair == model_.state_ptr[state + 1]) ++state;
        }
    }

    // Independent outcomes of one pair, from number `first` of each stream on.
    void sample_pair(int64_t first, int64_t pair, int64_t count, double* rewards, int32_t* following) const {
        for (int64_t step = 0; step < count; ++step) {
            for (int64_t r = 0; r < replications(); ++r) {
                const Transition seen = draw(0, pair, uniform(keys_[r], first + step));
                rewards[step * replications() + r] = seen.reward;
                following[step * replications() + r] = static_cast<int32_t>(seen.successor);
            }
        }
    }

    // One trajectory per replication, two numbers a step; `choose(replication, state, u)` gives the pair. `now` holds
    // the states and moves along; an ended episode goes on in `start`.
    template <class Choose>
    void follow_policy(int64_t first, int64_t start, int64_t* now, const Transitions& room, Choose choose) const {
        for (int64_t step = 0; step < room.length; ++step) {
            const int64_t number = 2 * (first + step);
            for (int64_t r = 0; r < replications(); ++r) {
                const int64_t pair = choose(r, now[r], uniform(keys_[r], number));
                const Transition seen = draw(now[r], pair, uniform(keys_[r], number + 1));
                room.put(step * replications() + r, seen);
                now[r] = seen.successor < model_.n_states ? seen.successor : start;
            }
        }
    }

private:
    const Model model_;
    std::vector<uint64_t> keys_;
    AliasTable alias_;
};

}  // namespace robustmdp
