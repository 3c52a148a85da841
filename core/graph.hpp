// Which states lead where. A model is a graph whose edges are the transitions of its pairs.
#pragma once

#include "rows.hpp"

#include <vector>

namespace robustmdp {

// For each state, the entries of a list of edges that lead to it.
class Incoming {
public:
    Incoming(const int32_t* targets, int64_t n_edges, int64_t n_states) : start_(n_states + 2, 0), edge_(n_edges) {
        for (int64_t e = 0; e < n_edges; ++e) ++start_[targets[e] + 1];
        for (int64_t s = 0; s <= n_states; ++s) start_[s + 1] += start_[s];
        std::vector<int64_t> next(start_.begin(), start_.end() - 1);
        for (int64_t e = 0; e < n_edges; ++e) edge_[next[targets[e]]++] = e;
    }

    template <class Use> void visit(int64_t state, Use use) const {
        for (int64_t i = start_[state]; i < start_[state + 1]; ++i) use(edge_[i]);
    }

private:
    std::vector<int64_t> start_, edge_;
};

// distance = steps of a shortest path along the edges to a goal state, -1 where there is none; next = where it goes.
// Target n_states is the end, which is no goal.
inline void paths_to(const int64_t* sources, const int32_t* targets, int64_t n_edges, int64_t n_states,
                     const uint8_t* goal, int64_t* distance, int64_t* next) {
    const Incoming incoming(targets, n_edges, n_states);
    std::vector<int64_t> queue;
    queue.reserve(n_states);
    for (int64_t s = 0; s < n_states; ++s) {
        distance[s] = goal[s] ? 0 : -1;
        next[s] = -1;
        if (goal[s]) queue.push_back(s);
    }
    for (size_t i = 0; i < queue.size(); ++i) {
        const int64_t state = queue[i];
        incoming.visit(state, [&](int64_t edge) {
            const int64_t before = sources[edge];
            if (distance[before] >= 0) return;
            distance[before] = distance[state] + 1;
            next[before] = state;
            queue.push_back(before);
        });
    }
}

// The largest set of pairs among `alive` such that all successors of a pair own a pair of the set; alive = that set.
// With `all_pairs` a state owns a pair of the set only if all of its pairs that were alive at first are in it.
inline void stay_inside(const Model& model, bool all_pairs, uint8_t* alive) {
    const int64_t n = model.n_states;
    std::vector<int32_t> owner(model.n_pairs);
    std::vector<int64_t> left(n, 0), dead;
    std::vector<uint8_t> member(n + 1, 0);
    for (int64_t s = 0; s < n; ++s)
        for (int64_t pair = model.state_ptr[s]; pair < model.state_ptr[s + 1]; ++pair) {
            owner[pair] = static_cast<int32_t>(s);
            left[s] += alive[pair] ? 1 : 0;
        }
    for (int64_t s = 0; s < n; ++s) member[s] = left[s] > 0;
    std::vector<int64_t> pair_of(model.indptr[model.n_pairs]);
    for (int64_t pair = 0; pair < model.n_pairs; ++pair)
        for (int64_t j = model.indptr[pair]; j < model.indptr[pair + 1]; ++j) pair_of[j] = pair;
    const Incoming incoming(model.indices, model.indptr[model.n_pairs], n);
    const auto remove = [&](int64_t pair) {
        if (!alive[pair]) return;
        alive[pair] = 0;
        const int32_t state = owner[pair];
        --left[state];
        if (member[state] && (all_pairs || left[state] == 0)) {
            member[state] = 0;
            dead.push_back(state);
        }
    };
    for (int64_t j = 0; j < model.indptr[model.n_pairs]; ++j)
        if (!member[model.indices[j]]) remove(pair_of[j]);
    for (size_t i = 0; i < dead.size(); ++i) {
        const int64_t state = dead[i];
        for (int64_t pair = model.state_ptr[state]; pair < model.state_ptr[state + 1]; ++pair) remove(pair);
        incoming.visit(state, [&](int64_t j) { remove(pair_of[j]); });
    }
}

}  // namespace robustmdp
