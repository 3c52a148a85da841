#include "sorted_rows.hpp"

#include "arrays.hpp"

namespace robustmdp {
namespace {

void require_length(size_t length, size_t wanted) {
    require(length == wanted, "columns must have the same length, and indptr one more");
}

// Rows that keep the arrays alive which they are stored in; once finished, the caller may resize these.
class Builder {
public:
    Builder(Array<int64_t> indptr, Array<int32_t> indices, Array<double> probabilities, Array<double> rewards,
            Array<int32_t> states, Array<int32_t> actions, int64_t largest_index)
        : rows({static_cast<int64_t>(indices.size()), indptr.data(), indices.data(), probabilities.data(),
                rewards.data(), states.data(), actions.data()},
               largest_index),
          indptr_(indptr), indices_(indices), probabilities_(probabilities), rewards_(rewards), states_(states),
          actions_(actions) {
        require_length(indptr.size(), indices.size() + 1);
        require_length(probabilities.size(), indices.size());
        require_length(rewards.size(), indices.size());
        require_length(states.size(), indices.size());
        require_length(actions.size(), indices.size());
    }

    bool append(Offsets state, Offsets action, Offsets next_state, Numbers probability, Numbers reward,
                Offsets outcome) {
        require_open();
        require_length(action.size(), state.size());
        require_length(next_state.size(), state.size());
        require_length(probability.size(), state.size());
        require_length(reward.size(), state.size());
        const bool has_outcomes = outcome.size() > 0;
        if (has_outcomes) require_length(outcome.size(), state.size());
        const Transitions block{static_cast<int64_t>(state.size()),
                                state.data(),
                                action.data(),
                                next_state.data(),
                                probability.data(),
                                reward.data(),
                                has_outcomes ? outcome.data() : nullptr};
        nb::gil_scoped_release released;
        return rows.append(block);
    }

    void finish() {
        require_open();
        rows.finish();
        is_finished_ = true;
        indptr_ = {};
        indices_ = {};
        probabilities_ = {};
        rewards_ = {};
        states_ = {};
        actions_ = {};
    }

    SortedRows rows;

private:
    void require_open() const { require(!is_finished_, "finished rows take no more transitions"); }

    Array<int64_t> indptr_;
    Array<int32_t> indices_;
    Array<double> probabilities_;
    Array<double> rewards_;
    Array<int32_t> states_;
    Array<int32_t> actions_;
    bool is_finished_ = false;
};

}  // namespace

void bind_sorted_rows(nb::module_& m) {
    nb::enum_<Flaw>(m, "Flaw", "What keeps a transition from being stored.")
        .value("none", Flaw::none)
        .value("state", Flaw::state)
        .value("action", Flaw::action)
        .value("next_state", Flaw::next_state)
        .value("probability", Flaw::probability)
        .value("reward", Flaw::reward)
        .value("outcome", Flaw::outcome)
        .value("order", Flaw::order)
        .value("capacity", Flaw::capacity);

    nb::class_<Builder>(m, "SortedRows", "CSR rows from transitions that come sorted by state and action.")
        .def(nb::init<Array<int64_t>, Array<int32_t>, Array<double>, Array<double>, Array<int32_t>, Array<int32_t>,
                      int64_t>(),
             nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(), nb::arg("probabilities").noconvert(),
             nb::arg("rewards").noconvert(), nb::arg("states").noconvert(), nb::arg("actions").noconvert(),
             nb::arg("largest_index"))
        .def("append", &Builder::append, nb::arg("state").noconvert(), nb::arg("action").noconvert(),
             nb::arg("next_state").noconvert(), nb::arg("probability").noconvert(), nb::arg("reward").noconvert(),
             nb::arg("outcome").noconvert(),
             "Store a block of transitions behind the last one; False where one of them has a flaw.")
        .def("finish", &Builder::finish, "Close the last row; the arrays are no longer used here.")
        .def_prop_ro("n_entries", [](const Builder& self) { return self.rows.n_entries; })
        .def_prop_ro("n_pairs", [](const Builder& self) { return self.rows.n_pairs; })
        .def_prop_ro("flaw", [](const Builder& self) { return self.rows.flaw; })
        .def_prop_ro("flaw_row", [](const Builder& self) { return self.rows.flaw_row; })
        .def_prop_ro("largest_state", [](const Builder& self) { return self.rows.largest_state; })
        .def_prop_ro("largest_state_row", [](const Builder& self) { return self.rows.largest_state_row; })
        .def_prop_ro("repeats_successors", [](const Builder& self) { return self.rows.repeats_successors; })
        .def_prop_ro("rewards_on_successors", [](const Builder& self) { return self.rows.rewards_on_successors; });
}

}  // namespace robustmdp
