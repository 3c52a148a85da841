// A world that the core draws from: a model, or a user's simulator in machine code.
#pragma once

#include "state.hpp"

#include <algorithm>

namespace robustmdp {

// 64 random bits at `position` of the stream `key`, so that a run can stop, resume or be split anywhere. SplitMix64: a
// bijective scramble of key + position * golden ratio.
inline uint64_t random_bits(uint64_t key, uint64_t position) {
    uint64_t z = key + position * 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

// The number in [0, 1) of their upper 53 bits.
inline double unit_interval(uint64_t bits) { return static_cast<double>(static_cast<int64_t>(bits >> 11)) * 0x1p-53; }

inline double uniform(uint64_t key, uint64_t position) { return unit_interval(random_bits(key, position)); }

// Drawing from rows of probabilities in constant time: Walker's alias tables, 12 bytes per entry. A row of n outcomes
// keeps, for each of n equally likely columns, the probability of staying in it and the outcome to go to otherwise.
struct AliasTable {
    std::vector<double> keep;
    std::vector<int32_t> other;  // counted from the row's first entry

    bool empty() const { return keep.empty(); }

    // Vose's method; rows sum to about 1.
    void fill(const int64_t* indptr, int64_t n_rows, const double* p) {
        keep.resize(static_cast<uint64_t>(indptr[n_rows]));
        other.resize(keep.size());
        std::vector<int32_t> small, large;
        for (int64_t row = 0; row < n_rows; ++row)
            fill_row(indptr[row], indptr[row + 1] - indptr[row], p, small, large);
    }

    // An entry of the row that starts at `first`, from one uniform number: its column, then its coin.
    int64_t draw(int64_t first, int64_t size, double u) const {
        const double scaled = u * static_cast<double>(size);
        const int64_t column =
            static_cast<int64_t>(scaled);  // < size, for u <= 1 - 2^-53 and rows are shorter than 2^53
        const int64_t partner = other[first + column];
        // Without a branch, which would be guessed wrongly as often as not.
        const int64_t stays = scaled - static_cast<double>(column) < keep[first + column];
        return first + partner + (column - partner) * stays;
    }

private:
    void fill_row(int64_t first, int64_t size, const double* p, std::vector<int32_t>& small,
                  std::vector<int32_t>& large) {
        double total = 0.0;
        for (int64_t j = 0; j < size; ++j) total += p[first + j];
        small.clear();
        large.clear();
        for (int32_t j = 0; j < size; ++j) {
            keep[first + j] = p[first + j] * static_cast<double>(size) / total;
            other[first + j] = j;
            (keep[first + j] < 1.0 ? small : large).push_back(j);
        }
        while (!small.empty() && !large.empty()) {
            const int32_t poor = small.back(), rich = large.back();
            small.pop_back();
            other[first + poor] = rich;
            keep[first + rich] -= 1.0 - keep[first + poor];
            if (keep[first + rich] < 1.0) {
                large.pop_back();
                small.push_back(rich);
            }
        }
        for (const int32_t j : small) keep[first + j] = 1.0;  // what rounding left over
        for (const int32_t j : large) keep[first + j] = 1.0;
    }
};

// Transitions of a model, drawn in constant time.
class ModelSampler {
public:
    explicit ModelSampler(const Model& model) : model_(model) {
        alias_.fill(model.indptr, model.n_pairs, model.probabilities);
    }

    const int64_t* state_ptr() const { return model_.state_ptr; }
    int64_t n_states() const { return model_.n_states; }

    // What a pair leads to, from 64 random bits.
    Transition draw(int64_t state, int64_t pair, uint64_t bits) const {
        const int64_t first = model_.indptr[pair];
        const int64_t entry = alias_.draw(first, model_.indptr[pair + 1] - first, unit_interval(bits));
        return {state, pair, model_.indices[entry], model_.rewards[model_.rewards_on_successors ? entry : pair]};
    }

private:
    const Model model_;
    AliasTable alias_;
};

// The documented signature of a simulator in machine code.
using SimulatorFunction = void (*)(int64_t state, int64_t action, uint64_t random, double* reward, int64_t* next_state,
                                   int64_t* terminated, void* user_data);

// What a simulator answered that no world can.
struct ImpossibleTransition {
    int64_t state, action, next_state, n_states;
    double reward, low, high;

    bool leaves_world() const { return next_state < 0 || next_state >= n_states; }
};

// Transitions of a user's simulator, in which every action is available everywhere.
class SimulatorSampler {
public:
    SimulatorSampler(SimulatorFunction sample, void* user_data, const int64_t* state_ptr, int64_t n_states,
                     int64_t n_actions, double low, double high)
        : sample_(sample), user_data_(user_data), state_ptr_(state_ptr), n_states_(n_states), n_actions_(n_actions),
          low_(low), high_(high) {}

    const int64_t* state_ptr() const { return state_ptr_; }
    int64_t n_states() const { return n_states_; }

    Transition draw(int64_t state, int64_t pair, uint64_t bits) const {
        // What the function leaves unset must not pass for an answer.
        double reward = NOT_A_NUMBER;
        int64_t next_state = -1, terminated = 0;
        const int64_t action = pair - state * n_actions_;
        sample_(state, action, bits, &reward, &next_state, &terminated, user_data_);
        const bool goes_on = terminated == 0, stays_inside = next_state >= 0 && next_state < n_states_;
        if ((goes_on && !stays_inside) || !(reward >= low_ && reward <= high_))
            throw ImpossibleTransition{state, action, goes_on ? next_state : 0, n_states_, reward, low_, high_};
        return {state, pair, goes_on ? next_state : n_states_, reward};
    }

private:
    const SimulatorFunction sample_;
    void* const user_data_;
    const int64_t* const state_ptr_;
    const int64_t n_states_, n_actions_;
    const double low_, high_;
};

template <class Sampler> class World {
public:
    World(Sampler sampler, std::vector<uint64_t> keys) : sampler_(std::move(sampler)), keys_(std::move(keys)) {}

    int64_t replications() const { return static_cast<int64_t>(keys_.size()); }
    int64_t n_pairs() const { return sampler_.state_ptr()[sampler_.n_states()]; }
    double number(int64_t replication, int64_t position) const { return uniform(keys_[replication], position); }

    // Outcome `position` of one replication's stream.
    Transition draw(int64_t replication, int64_t state, int64_t pair, int64_t position) const {
        return sampler_.draw(state, pair, random_bits(keys_[replication], position));
    }

    int64_t state_of(int64_t pair) const {
        const int64_t* starts = sampler_.state_ptr();
        return std::upper_bound(starts, starts + sampler_.n_states() + 1, pair) - starts - 1;
    }

    // One outcome of each pair in turn, round after round; transition `first` belongs to pair `first` mod pairs.
    void sample_all_pairs(int64_t first, const Transitions& room) const {
        const int64_t* starts = sampler_.state_ptr();
        int64_t pair = first % n_pairs(), state = state_of(pair);
        for (int64_t step = 0; step < room.length; ++step) {
            for (int64_t r = 0; r < replications(); ++r)
                room.put(step * replications() + r, draw(r, state, pair, first + step));
            if (++pair == n_pairs()) pair = state = 0;
            if (pair == starts[state + 1]) ++state;
        }
    }

    // The same for some pairs, which `room` numbers in their order; `states` are theirs.
    void sample_in_turn(int64_t first, int64_t count, const int64_t* states, const int64_t* pairs,
                        const Transitions& room) const {
        int64_t at = first % count;
        for (int64_t step = 0; step < room.length; ++step, at = at + 1 == count ? 0 : at + 1) {
            for (int64_t r = 0; r < replications(); ++r) {
                Transition seen = draw(r, states[at], pairs[at], first + step);
                seen.pair = at;
                room.put(step * replications() + r, seen);
            }
        }
    }

    // Independent outcomes of one pair, from number `first` of each stream on.
    void sample_pair(int64_t first, int64_t pair, int64_t count, double* rewards, int32_t* following) const {
        const int64_t state = state_of(pair);
        for (int64_t step = 0; step < count; ++step) {
            for (int64_t r = 0; r < replications(); ++r) {
                const Transition seen = draw(r, state, pair, first + step);
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
                const Transition seen = draw(r, now[r], pair, number + 1);
                room.put(step * replications() + r, seen);
                now[r] = seen.successor < sampler_.n_states() ? seen.successor : start;
            }
        }
    }

private:
    const Sampler sampler_;
    std::vector<uint64_t> keys_;
};

}  // namespace robustmdp
