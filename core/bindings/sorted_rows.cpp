#include "../sorted_rows.hpp"

#include "arrays.hpp"

#include <nanobind/stl/optional.h>

#include <optional>

namespace robustmdp {

namespace {

constexpr const char* LENGTHS = "columns must have the same length, and indptr one more";

struct StoredArrays {
    Array<int64_t> indptr;
    Array<int32_t> indices;
    Array<double> probabilities, rewards;
    Array<int32_t> states, actions;

    RowArrays view() const {
        const auto capacity = static_cast<int64_t>(indices.size());
        require_length(capacity + 1, LENGTHS, indptr);
        require_length(capacity, LENGTHS, probabilities, rewards, states, actions);
        return {capacity,       indptr.data(), indices.data(), probabilities.data(),
                rewards.data(), states.data(), actions.data()};
    }
};

// Rows that keep the arrays alive in which they are stored; once finished, the caller may resize these.
class Builder : public SortedRows {
public:
    Builder(Array<int64_t> indptr, Array<int32_t> indices, Array<double> probabilities, Array<double> rewards,
            Array<int32_t> states, Array<int32_t> actions, int64_t largest_index)
        : Builder(StoredArrays{indptr, indices, probabilities, rewards, states, actions}, largest_index) {}

    bool append(Offsets state, Offsets action, Offsets next_state, Numbers probability, Numbers reward,
                Offsets outcome) {
        require_open();
        const auto count = static_cast<int64_t>(state.size());
        require_length(count, LENGTHS, action, next_state, probability, reward);
        if (outcome.size() > 0) require_length(count, LENGTHS, outcome);
        const SortedTransitions block{count,
                                      state.data(),
                                      action.data(),
                                      next_state.data(),
                                      probability.data(),
                                      reward.data(),
                                      outcome.size() > 0 ? outcome.data() : nullptr};
        const nb::gil_scoped_release release;
        return SortedRows::append(block);
    }

    void finish() {
        require_open();
        SortedRows::finish();
        kept_.reset();
    }

private:
    Builder(const StoredArrays& arrays, int64_t largest_index)
        : SortedRows(arrays.view(), largest_index), kept_(arrays) {}

    void require_open() const { require(kept_.has_value(), "finished rows take no more transitions"); }

    std::optional<StoredArrays> kept_;
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
        .def_ro("n_entries", &Builder::n_entries)
        .def_ro("n_pairs", &Builder::n_pairs)
        .def_ro("flaw", &Builder::flaw)
        .def_ro("flaw_row", &Builder::flaw_row)
        .def_ro("largest_state", &Builder::largest_state)
        .def_ro("largest_state_row", &Builder::largest_state_row)
        .def_ro("repeats_successors", &Builder::repeats_successors)
        .def_ro("rewards_on_successors", &Builder::rewards_on_successors);
}

}  // namespace robustmdp
