// Bellman steps that use new values at once, a few neighbouring states at a time: sweeps, and the search for a bound near
// a guess.
#pragma once

#include "graph.hpp"
#include "sweep.hpp"

#include <tuple>

namespace robustmdp {

// Where the operator applies: `pinned` states keep their values, `forbidden` pairs are left out (none where null).
struct Part {
    double discount;
    const uint8_t* pinned;
    const uint8_t* forbidden;
};

constexpr int64_t AT_ONCE = 16;  // one state after the other would wait for each other

inline int64_t count_chunks(const Model& model) { return (model.n_states + AT_ONCE - 1) / AT_ONCE; }

// use(s, (Tv)(s)) for the states of a chunk that are not pinned. `outcome` is sign * discount * v with the end's 0 last.
template <class Set, class Use>
inline void visit_chunk(const Set& set, const Model& model, Levels levels, const Part& part, int64_t chunk,
                        const double* outcome, double* memory, double* q, Block& block, Use use) {
    const int64_t first = AT_ONCE * chunk, last = std::min(first + AT_ONCE, model.n_states);
    worst_values(set, model, levels, outcome, PairList{nullptr}, model.state_ptr[first], model.state_ptr[last], memory,
                 q, block);
    for (int64_t s = first; s < last; ++s) {
        if (part.pinned[s]) continue;
        double best = -INFINITE;
        for (int64_t pair = model.state_ptr[s]; pair < model.state_ptr[s + 1]; ++pair)
            if (!part.forbidden || !part.forbidden[pair]) best = larger(q[pair], best);
        use(s, best);
    }
}

// v = Tv, from the last chunk to the first and back in turn, each seeing what was found before it.
template <class Set>
void sweep_in_place(const Set& set, const Model& model, Levels levels, const Part& part, int64_t sweeps,
                    double* outcome, double* memory, double* q) {
    Block block = make_block<Set>(model);
    const int64_t chunks = count_chunks(model);
    for (int64_t k = 0; k < sweeps * chunks; ++k) {
        const bool backwards = k / chunks % 2 == 0;
        visit_chunk(set, model, levels, part, backwards ? chunks - 1 - k % chunks : k % chunks, outcome, memory, q,
                    block, [&](int64_t s, double best) { outcome[s] = model.sign * part.discount * best; });
    }
}

// For each state, the chunks whose transitions lead to it, each once.
inline Incoming chunks_before(const Model& model) {
    std::vector<int32_t> targets, chunks, seen(model.n_states + 1, -1);
    for (int64_t s = 0; s < model.n_states; ++s) {
        const auto chunk = static_cast<int32_t>(s / AT_ONCE);
        const int64_t last = model.indptr[model.state_ptr[s + 1]];
        for (int64_t j = model.indptr[model.state_ptr[s]]; j < last; ++j) {
            const int32_t target = model.indices[j];
            if (seen[target] == chunk) continue;
            seen[target] = chunk;
            targets.push_back(target);
            chunks.push_back(chunk);
        }
    }
    return Incoming(chunks.data(), targets.data(), static_cast<int64_t>(targets.size()), model.n_states);
}

// With drift < 0, v falls to Tv + drift, or to its limit, wherever Tv + drift/2 < v, until that is nowhere so; with
// drift > 0 it rises. A chunk is visited again when a value that it reads has changed, until `most_pairs` were visited.
// Returns the share of the chunks that may still have to change, and how many pairs were visited.
template <class Set>
std::tuple<double, int64_t> seek_bound(const Set& set, const Model& model, Levels levels, const Part& part,
                                       double drift, const double* limit, int64_t most_pairs, double* outcome,
                                       double* memory, double* q) {
    Block block = make_block<Set>(model);
    const Incoming readers = chunks_before(model);
    const int64_t chunks = count_chunks(model);
    const double side = drift < 0.0 ? -1.0 : 1.0, half = 0.5 * magnitude(drift), unit = model.sign * part.discount;
    std::vector<uint8_t> due(chunks, 1);
    int64_t left = chunks, visited = 0;
    for (int64_t k = 0; left > 0 && visited < most_pairs; ++k) {
        const bool backwards = k / chunks % 2 == 0;
        const int64_t chunk = backwards ? chunks - 1 - k % chunks : k % chunks;
        if (!due[chunk]) continue;
        due[chunk] = 0;
        --left;
        visited += model.state_ptr[std::min(AT_ONCE * (chunk + 1), model.n_states)] - model.state_ptr[AT_ONCE * chunk];
        visit_chunk(set, model, levels, part, chunk, outcome, memory, q, block, [&](int64_t s, double best) {
            const double v = outcome[s] / unit;
            if (side * (best - v) <= -half || side * (limit[s] - v) <= 0.0) return;
            const double moved = best + drift, next = unit * (side * moved < side * limit[s] ? moved : limit[s]);
            if (next == outcome[s]) return;  // at the limit, up to rounding
            outcome[s] = next;
            readers.visit(s, [&](int64_t reader) {
                left += due[reader] ? 0 : 1;
                due[reader] = 1;
            });
        });
    }
    return {static_cast<double>(left) / static_cast<double>(chunks), visited};
}

}  // namespace robustmdp
