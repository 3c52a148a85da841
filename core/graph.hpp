// Which states lead where. A model is a graph whose edges are the transitions of its pairs.
#pragma once

#include "rows.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace robustmdp {

// For each state, the sources of the edges that lead to it.
class Incoming {
public:
    template <class Source>
    Incoming(const Source* sources, const int32_t* targets, int64_t n_edges, int64_t n_states)
        : start_(n_states + 2, 0), source_(n_edges) {
        for (int64_t e = 0; e < n_edges; ++e) ++start_[targets[e] + 1];
        for (int64_t s = 0; s <= n_states; ++s) start_[s + 1] += start_[s];
        std::vector<int64_t> next(start_.begin(), start_.end() - 1);
        for (int64_t e = 0; e < n_edges; ++e) source_[next[targets[e]]++] = sources[e];
    }

    template <class Use> void visit(int64_t state, Use use) const {
        for (int64_t i = start_[state]; i < start_[state + 1]; ++i) use(source_[i]);
    }

private:
    std::vector<int64_t> start_, source_;
};

// distance = steps of a shortest path along the edges to a goal state, -1 where there is none; next = where it goes.
// Target n_states is the end, which is no goal.
inline void paths_to(const int64_t* sources, const int32_t* targets, int64_t n_edges, int64_t n_states,
                     const uint8_t* goal, int64_t* distance, int64_t* next) {
    const Incoming incoming(sources, targets, n_edges, n_states);
    std::vector<int64_t> queue;
    queue.reserve(n_states);
    for (int64_t s = 0; s < n_states; ++s) {
        distance[s] = goal[s] ? 0 : -1;
        next[s] = -1;
        if (goal[s]) queue.push_back(s);
    }
    for (size_t i = 0; i < queue.size(); ++i) {
        const int64_t state = queue[i];
        incoming.visit(state, [&](int64_t before) {
            if (distance[before] >= 0) return;
            distance[before] = distance[state] + 1;
            next[before] = state;
            queue.push_back(before);
        });
    }
}

// State s leads to targets[indptr[s]..indptr[s + 1]], but for edges without mass; target n_states is the end.
struct Edges {
    const int64_t* indptr;
    const int32_t* targets;
    const double* mass;
    int64_t n_states;

    bool is_inner(int64_t e) const { return targets[e] < n_states && mass[e] > 0.0; }
};

// Tarjan's strongly connected components, numbered so that those that can follow come first.
class Components {
public:
    explicit Components(const Edges& edges) : label(edges.n_states, -1), edges_(edges), low_(edges.n_states, -1) {
        for (int64_t s = 0; s < edges.n_states; ++s)
            if (low_[s] < 0) search(s);
    }

    std::vector<int64_t> label;
    int64_t count = 0;

private:
    struct Visit {
        int64_t state, edge, index;
    };

    void search(int64_t root) {
        enter(root);
        while (!path_.empty()) {
            Visit& top = path_.back();
            if (top.edge < edges_.indptr[top.state + 1]) {
                const int64_t e = top.edge++;
                if (!edges_.is_inner(e)) continue;
                const int64_t next = edges_.targets[e];
                if (low_[next] < 0)
                    enter(next);
                else if (label[next] < 0)
                    low_[top.state] = std::min(low_[top.state], low_[next]);
                continue;
            }
            const Visit done = top;
            path_.pop_back();
            if (low_[done.state] == done.index) close(done.state);
            if (!path_.empty() && label[done.state] < 0)
                low_[path_.back().state] = std::min(low_[path_.back().state], low_[done.state]);
        }
    }
    void enter(int64_t state) {
        path_.push_back({state, edges_.indptr[state], seen_});
        low_[state] = seen_++;
        open_.push_back(state);
    }
    void close(int64_t state) {
        int64_t member = -1;
        while (member != state) {
            member = open_.back();
            open_.pop_back();
            label[member] = count;
        }
        ++count;
    }

    const Edges& edges_;
    std::vector<int64_t> low_, open_;
    std::vector<Visit> path_;
    int64_t seen_ = 0;
};

// An order in which most successors of a state come before it, so that one sweep propagates values far: components that
// can follow first; inside one, by the steps of a shortest path out of it.
inline std::vector<int64_t> order_by_graph(const Edges& edges) {
    const int64_t n = edges.n_states;
    const Components components(edges);
    const std::vector<int64_t>& label = components.label;
    std::vector<int64_t> sources, start(components.count + 1, 0), queue, order(n);
    std::vector<int32_t> targets;
    std::vector<uint8_t> found(n, 0);
    for (int64_t s = 0; s < n; ++s) {
        double kept = 0.0;
        for (int64_t e = edges.indptr[s]; e < edges.indptr[s + 1]; ++e)
            if (edges.is_inner(e) && label[edges.targets[e]] == label[s]) {
                sources.push_back(s);
                targets.push_back(edges.targets[e]);
                kept += edges.mass[e];
            }
        if (kept < 1.0 - 1e-9) found[s] = 1, queue.push_back(s);
        ++start[label[s] + 1];
    }
    const Incoming incoming(sources.data(), targets.data(), static_cast<int64_t>(targets.size()), n);
    for (size_t i = 0; i < queue.size(); ++i)
        incoming.visit(queue[i], [&](int64_t before) {
            if (!found[before]) found[before] = 1, queue.push_back(before);
        });
    for (int64_t s = 0; s < n; ++s)
        if (!found[s]) queue.push_back(s);  // no way out
    std::partial_sum(start.begin(), start.end(), start.begin());
    for (const int64_t s : queue) order[start[label[s]]++] = s;
    return order;
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
    const Incoming incoming(pair_of.data(), model.indices, model.indptr[model.n_pairs], n);
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
        incoming.visit(state, remove);
    }
}

}  // namespace robustmdp
