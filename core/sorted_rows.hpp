// CSR rows from transitions that come sorted by state and action, block by block.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace robustmdp {

// What keeps a transition from being stored.
enum class Flaw {
    none,
    state,        // not in 0..largest_index
    action,       // not in 0..largest_index
    next_state,   // not in 0..largest_index
    probability,  // negative, infinite or NaN
    reward,       // infinite or NaN
    outcome,      // differs from that of the pair's other transitions
    order,        // belongs before an earlier one
    capacity,     // one more than there is room for
};

// Equally long columns; `outcome` is null where there is none.
struct SortedTransitions {
    int64_t count;
    const int64_t* state;
    const int64_t* action;
    const int64_t* next_state;
    const double* probability;
    const double* reward;
    const int64_t* outcome;
};

// Where rows are stored, with room for `capacity` transitions and as many pairs, each in a row of its own.
struct RowArrays {
    int64_t capacity;
    int64_t* indptr;  // capacity + 1
    int32_t* indices;
    double* probabilities;
    double* rewards;
    int32_t* states;  // of each pair
    int32_t* actions;
};

// The rows so far. Transitions of probability 0 are left out; those of a pair are sorted by successor, equal successors
// in the order in which they came.
class SortedRows {
public:
    SortedRows(const RowArrays& arrays, int64_t largest_index) : arrays_(arrays), largest_index_(largest_index) {}

    int64_t n_seen = 0;     // transitions that came
    int64_t n_entries = 0;  // transitions that are stored
    int64_t n_pairs = 0;
    int64_t largest_state = -1;          // among states and successors
    int64_t largest_state_row = -1;      // the first transition that names it
    bool repeats_successors = false;     // some row has a successor twice
    bool rewards_on_successors = false;  // some row has different rewards
    Flaw flaw = Flaw::none;              // of the first transition that could not be stored
    int64_t flaw_row = -1;

    // Stores a block behind the last one; false where a transition has a flaw.
    bool append(const SortedTransitions& block) {
        for (int64_t i = 0; i < block.count; ++i) {
            flaw = store(block, i);
            if (flaw != Flaw::none) {
                flaw_row = n_seen;
                return false;
            }
            ++n_seen;
        }
        return true;
    }

    // Closes the last row.
    void finish() {
        close_row();
        arrays_.indptr[n_pairs] = n_entries;
    }

private:
    struct Entry {
        int32_t successor;
        int64_t position;
        double probability;
        double reward;
    };

    bool is_index(int64_t number) const { return 0 <= number && number <= largest_index_; }

    Flaw store(const SortedTransitions& block, int64_t i) {
        const int64_t state = block.state[i], action = block.action[i], successor = block.next_state[i];
        const double probability = block.probability[i], reward = block.reward[i];
        if (n_seen >= arrays_.capacity) return Flaw::capacity;
        if (!is_index(state)) return Flaw::state;
        if (!is_index(action)) return Flaw::action;
        if (!is_index(successor)) return Flaw::next_state;
        if (!(probability >= 0.0 && std::isfinite(probability))) return Flaw::probability;
        if (!std::isfinite(reward)) return Flaw::reward;
        if (state < last_state_ || (state == last_state_ && action < last_action_)) return Flaw::order;
        if (std::max(state, successor) > largest_state) {
            largest_state = std::max(state, successor);
            largest_state_row = n_seen;
        }
        const bool new_pair = state != last_state_ || action != last_action_;
        if (new_pair) {
            last_state_ = state;
            last_action_ = action;
            last_outcome_ = block.outcome ? block.outcome[i] : 0;
            last_is_stored_ = false;
        } else if (block.outcome && block.outcome[i] != last_outcome_) {
            return Flaw::outcome;
        }
        if (probability == 0.0) return Flaw::none;
        // A pair whose transitions all have probability 0 is unavailable: its row starts with the first positive one.
        if (!last_is_stored_) {
            close_row();
            arrays_.indptr[n_pairs] = n_entries;
            arrays_.states[n_pairs] = static_cast<int32_t>(state);
            arrays_.actions[n_pairs] = static_cast<int32_t>(action);
            ++n_pairs;
            last_is_stored_ = true;
        }
        arrays_.indices[n_entries] = static_cast<int32_t>(successor);
        arrays_.probabilities[n_entries] = probability;
        arrays_.rewards[n_entries] = reward;
        ++n_entries;
        return Flaw::none;
    }

    // Sorts the last row and notes what it has.
    void close_row() {
        if (n_pairs == 0) return;
        const int64_t start = arrays_.indptr[n_pairs - 1], stop = n_entries;
        const int32_t* successors = arrays_.indices;
        if (!std::is_sorted(successors + start, successors + stop)) sort(start, stop);
        for (int64_t i = start + 1; i < stop; ++i) {
            repeats_successors |= arrays_.indices[i] == arrays_.indices[i - 1];
            rewards_on_successors |= arrays_.rewards[i] != arrays_.rewards[start];
        }
    }

    void sort(int64_t start, int64_t stop) {
        scratch_.clear();
        for (int64_t i = start; i < stop; ++i) {
            scratch_.push_back({arrays_.indices[i], i, arrays_.probabilities[i], arrays_.rewards[i]});
        }
        // The position makes the order unique, and std::stable_sort would allocate at every call.
        std::sort(scratch_.begin(), scratch_.end(), [](const Entry& one, const Entry& other) {
            return std::pair(one.successor, one.position) < std::pair(other.successor, other.position);
        });
        for (const Entry& entry : scratch_) {
            arrays_.indices[start] = entry.successor;
            arrays_.probabilities[start] = entry.probability;
            arrays_.rewards[start] = entry.reward;
            ++start;
        }
    }

    RowArrays arrays_;
    int64_t largest_index_;
    int64_t last_state_ = -1;
    int64_t last_action_ = -1;
    int64_t last_outcome_ = 0;
    bool last_is_stored_ = false;  // whether the last pair has a row
    std::vector<Entry> scratch_;
};

}  // namespace robustmdp
