// Arrays as the bindings take them: contiguous, of one type, checked by nanobind and by length.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>
#include <string>

#include "../rows.hpp"

namespace robustmdp {

namespace nb = nanobind;

template <class T> using Array = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Table = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Numbers = Array<const double>;
using Offsets = Array<const int64_t>;

inline void require(bool holds, const char* sentence) {
    if (!holds) throw std::invalid_argument(sentence);
}

template <class... Arrays> void require_length(int64_t length, const char* sentence, const Arrays&... arrays) {
    require(((static_cast<int64_t>(arrays.size()) == length) && ...), sentence);
}

// Model arrays, kept alive; `MDP` has checked their contents.
struct ModelArrays {
    Offsets indptr;
    Array<const int32_t> indices;
    Numbers probabilities, rewards;
    Offsets state_ptr;
    Array<const int32_t> added;
    Model view;

    ModelArrays(Offsets indptr, Array<const int32_t> indices, Numbers probabilities, Numbers rewards, Offsets state_ptr,
                int64_t longest_row, bool rewards_on_successors, int64_t n_columns)
        : indptr(indptr), indices(indices), probabilities(probabilities), rewards(rewards), state_ptr(state_ptr) {
        const int64_t n_pairs = static_cast<int64_t>(indptr.size()) - 1;
        const int64_t n_states = static_cast<int64_t>(state_ptr.size()) - 1;
        require(n_pairs >= 1 && n_states >= 1, "a model must have at least one state and one pair");
        require(indices.size() == probabilities.size(), "indices and probabilities must be equally long");
        require(rewards.size() == (rewards_on_successors ? indices.size() : static_cast<size_t>(n_pairs)),
                "there must be one reward per pair or per transition");
        if (n_columns < 0) n_columns = n_states;
        require(n_columns >= n_states, "there must be a column for every state");
        view = {indptr.data(), indices.data(), probabilities.data(), rewards.data(),        state_ptr.data(),
                n_states,      n_pairs,        longest_row,          rewards_on_successors, n_columns};
    }

    // The states that a set may add to every row from now on.
    void add_successors(Array<const int32_t> states) {
        added = states;
        view.added = added.data();
        view.added_count = static_cast<int64_t>(added.size());
    }
};

}  // namespace robustmdp
