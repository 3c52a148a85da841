// The weights of a weighted L1 ball, kept alive.
#pragma once

#include "../ambiguity/weighted_l1.hpp"
#include "arrays.hpp"

namespace robustmdp {

struct WeightedL1Arrays : WeightedL1 {
    Numbers by_transition, by_state;

    WeightedL1Arrays(Numbers by_transition, Numbers by_state) : by_transition(by_transition), by_state(by_state) {
        weights = by_transition.data();
        state_weights = by_state.data();
    }
    size_t column_length() const { return by_transition.size(); }
    size_t added_length() const { return by_state.size(); }
};

}  // namespace robustmdp
