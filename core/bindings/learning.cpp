#include "learning.hpp"

#include "../ambiguity/constrained.hpp"
#include "../divergences/cressie_read.hpp"
#include "../sweep.hpp"

#include <nanobind/stl/pair.h>

#include <algorithm>

namespace robustmdp {

namespace {

// Transitions come as tables, (length, replications) each.
template <class... Others>
int64_t length_of(int64_t replications, const Table<int32_t>& first, const Others&... others) {
    const bool alike = ((others.shape(0) == first.shape(0) && others.shape(1) == first.shape(1)) && ...);
    require(alike && static_cast<int64_t>(first.shape(1)) == replications,
            "transitions must have one column per replication");
    return static_cast<int64_t>(first.shape(0));
}

Transitions transitions_of(int64_t replications, const Table<int32_t>& states, const Table<int32_t>& pairs,
                           const Table<double>& rewards, const Table<int32_t>& following) {
    const int64_t length = length_of(replications, states, pairs, rewards, following);
    return {states.data(), pairs.data(), rewards.data(), following.data(), length};
}

// States and successors come from worlds written in Python, so each is checked before it is an address.
void require_possible(const LearnerState& tables, const Transition& seen) {
    require(seen.state >= 0 && seen.state < tables.n_states && seen.successor >= 0 &&
                seen.successor <= tables.n_states && seen.pair >= tables.state_ptr[seen.state] &&
                seen.pair < tables.state_ptr[seen.state + 1],
            "a transition must go from a state by one of its pairs to a state or the end");
}

void require_possible(const LearnerState& tables, const Transitions& seen) {
    for (int64_t at = 0; at < seen.length * tables.replications; ++at) require_possible(tables, seen[at]);
}

void bind_records(nb::module_& m) {
    nb::class_<Steps>(m, "Steps")
        .def(nb::init<double, double, double, double, double, double>(), nb::arg("scale"), nb::arg("offset"),
             nb::arg("slope"), nb::arg("power"), nb::arg("cap"), nb::arg("per_weight"))
        .def("at", [](const Steps& steps, double n) { return steps.formula(n); })
        .def("fill", [](const Steps& steps, int64_t first, Array<double> out) {
            for (size_t i = 0; i < out.size(); ++i) out(i) = steps(first + i);
        });
    nb::class_<SettingsArrays>(m, "LearnerSettings")
        .def(
            "__init__",
            [](SettingsArrays* self, Numbers levels, double discount, bool inside, bool can_end, bool growing,
               bool by_visits, bool constrained, bool literal, double anchor, double burn_in, double low, double high) {
                new (self) SettingsArrays{levels,
                                          {discount, inside, can_end, growing, by_visits, constrained, literal, anchor,
                                           burn_in, low, high, levels.data(), levels.size() == 1}};
            },
            nb::kw_only(), nb::arg("levels"), nb::arg("discount"), nb::arg("inside"), nb::arg("can_end"),
            nb::arg("growing") = false, nb::arg("by_visits") = false, nb::arg("constrained") = false,
            nb::arg("literal") = false, nb::arg("anchor") = 0.0, nb::arg("burn_in") = 0.0, nb::arg("low") = -INFINITE,
            nb::arg("high") = INFINITE);
    nb::class_<LearnerArrays>(m, "LearnerState").def(nb::init<const nb::kwargs&>());
    nb::class_<EvidenceArrays>(m, "Evidence").def(nb::init<const LearnerArrays&, double, const nb::kwargs&>());
}

template <class Sampler> void require_same_size(const LearnerState& tables, const World<Sampler>& world) {
    require(tables.n_pairs == world.n_pairs() && tables.replications == world.replications(),
            "learner and world must be of one size");
}

// A world and who acts in it; arrays that it reads are kept alive.
template <class Sampler> struct BoundWorld : World<Sampler> {
    Offsets state_ptr;
    Behaviour behaviour;

    BoundWorld(Offsets state_ptr, Sampler sampler, Array<const uint64_t> keys, std::optional<Numbers> probabilities,
               std::optional<Steps> epsilon)
        : World<Sampler>(std::move(sampler), {keys.data(), keys.data() + keys.size()}), state_ptr(state_ptr),
          behaviour{state_ptr.data(), {}, epsilon} {
        if (!probabilities) return;
        require_length(this->n_pairs(), "a behaviour policy must have one probability per pair", *probabilities);
        behaviour.probabilities.fill(state_ptr.data(), static_cast<int64_t>(state_ptr.size()) - 1,
                                     probabilities->data());
    }
};

template <class Sampler> nb::class_<BoundWorld<Sampler>> bind_draws(nb::module_& m, const char* name) {
    using Bound = BoundWorld<Sampler>;
    return nb::class_<Bound>(m, name)
        .def("number", &Bound::number)
        .def("sample_all_pairs",
             [](const Bound& self, int64_t first, Table<int32_t> states, Table<int32_t> pairs, Table<double> rewards,
                Table<int32_t> following) {
                 const Transitions room = transitions_of(self.replications(), states, pairs, rewards, following);
                 const nb::gil_scoped_release release;
                 self.sample_all_pairs(first, room);
             })
        .def("sample_in_turn",
             [](const Bound& self, int64_t first, Offsets from, Offsets by, Table<int32_t> states, Table<int32_t> pairs,
                Table<double> rewards, Table<int32_t> following) {
                 const Transitions room = transitions_of(self.replications(), states, pairs, rewards, following);
                 require(from.size() == by.size() && by.size() >= 1, "there must be a state for each pair");
                 const int64_t count = static_cast<int64_t>(by.size());
                 for (int64_t i = 0; i < std::min(count, room.length); ++i) {
                     const int64_t at = (first + i) % count;
                     require(by(at) >= 0 && by(at) < self.n_pairs() && from(at) == self.state_of(by(at)),
                             "pairs must be those of the world, with their states");
                 }
                 const nb::gil_scoped_release release;
                 self.sample_in_turn(first, count, from.data(), by.data(), room);
             })
        .def("follow_policy",
             [](const Bound& self, int64_t first, int64_t start, Array<int64_t> now, Table<int32_t> states,
                Table<int32_t> pairs, Table<double> rewards, Table<int32_t> following) {
                 const Transitions room = transitions_of(self.replications(), states, pairs, rewards, following);
                 require_length(self.replications(), "there must be one state per replication", now);
                 const nb::gil_scoped_release release;
                 self.follow_policy(first, start, now.data(), room,
                                    [&](int64_t, int64_t s, double u) { return self.behaviour.draw(s, u); });
             })
        .def("draws",
             [](const Bound& self, int64_t replication, int64_t first, int64_t pair, Array<double> rewards,
                Array<int64_t> following) {
                 require(pair >= 0 && pair < self.n_pairs() && rewards.size() == following.size(),
                         "pair must be one of the world's");
                 const nb::gil_scoped_release release;
                 const int64_t state = self.state_of(pair);
                 for (size_t i = 0; i < rewards.size(); ++i) {
                     const Transition seen = self.draw(replication, state, pair, first + i);
                     rewards(i) = seen.reward;
                     following(i) = seen.successor;
                 }
             })
        .def("sample_pair",
             [](const Bound& self, int64_t first, int64_t pair, Table<double> rewards, Table<int32_t> following) {
                 require(pair >= 0 && pair < self.n_pairs(), "pair must be one of the world's");
                 const int64_t count = length_of(self.replications(), following, rewards);
                 const nb::gil_scoped_release release;
                 self.sample_pair(first, pair, count, rewards.data(), following.data());
             });
}

// In the words of robustmdp.models.Simulator, whose numbers look as Python shows them.
void refuse_transition(const std::exception_ptr& thrown, void*) {
    try {
        std::rethrow_exception(thrown);
    } catch (const ImpossibleTransition& wrong) {
        const char* successor = "next_state must lie in 0..{}: got {} from state {}, action {}";
        const char* reward = "reward must lie in reward_range [{:g}, {:g}]: got {} from state {}, action {}";
        const nb::object message =
            wrong.leaves_world()
                ? nb::str(successor).attr("format")(wrong.n_states - 1, wrong.next_state, wrong.state, wrong.action)
                : nb::str(reward).attr("format")(wrong.low, wrong.high, wrong.reward, wrong.state, wrong.action);
        PyErr_SetObject(PyExc_ValueError, message.ptr());
    }
}

void bind_world(nb::module_& m) {
    using KnownWorld = BoundWorld<ModelSampler>;
    bind_draws<ModelSampler>(m, "World")
        .def(
            "__init__",
            [](KnownWorld* self, const ModelArrays& model, Array<const uint64_t> keys, std::optional<Numbers> behaviour,
               std::optional<Steps> epsilon) {
                new (self) KnownWorld(model.state_ptr, ModelSampler(model.view), keys, behaviour, epsilon);
            },
            nb::arg("model"), nb::arg("keys"), nb::arg("behaviour").none(), nb::arg("epsilon").none(),
            nb::keep_alive<1, 2>());
    using SimulatedWorld = BoundWorld<SimulatorSampler>;
    bind_draws<SimulatorSampler>(m, "SimulatedWorld")
        .def(
            "__init__",
            [](SimulatedWorld* self, uintptr_t function, uintptr_t user_data, Offsets state_ptr, int64_t n_actions,
               double low, double high, Array<const uint64_t> keys, std::optional<Numbers> behaviour,
               std::optional<Steps> epsilon) {
                const int64_t n_states = static_cast<int64_t>(state_ptr.size()) - 1;
                require(function != 0 && n_states >= 1 && n_actions >= 1 && state_ptr(n_states) == n_states * n_actions,
                        "a simulator must have a function and the same actions in every state");
                const SimulatorSampler sampler(reinterpret_cast<SimulatorFunction>(function),
                                               reinterpret_cast<void*>(user_data), state_ptr.data(), n_states,
                                               n_actions, low, high);
                new (self) SimulatedWorld(state_ptr, sampler, keys, behaviour, epsilon);
            },
            nb::arg("function"), nb::arg("user_data"), nb::arg("state_ptr"), nb::arg("n_actions"), nb::arg("low"),
            nb::arg("high"), nb::arg("keys"), nb::arg("behaviour").none(), nb::arg("epsilon").none());
    nb::register_exception_translator(refuse_transition);
}

// For loops that another compiler has made: they have checked what they pass.
int64_t choose_by_address(const Learner* learner, int64_t replication, int64_t state, double u, double epsilon) {
    return learner->choose(replication, state, u, epsilon);
}

void absorb_by_address(Learner* learner, int64_t first, int64_t state, int64_t pair, double reward, int64_t successor) {
    int32_t from = static_cast<int32_t>(state), by = static_cast<int32_t>(pair);
    int32_t to = static_cast<int32_t>(successor);
    learner->absorb(first, {&from, &by, &reward, &to, 1});
}

template <class Sampler> void bind_online(nb::class_<Learner>& learners) {
    learners.def("learn_online", [](Learner& learner, const BoundWorld<Sampler>& world, int64_t first, int64_t count,
                                    int64_t start, Array<int64_t> now) {
        require_same_size(learner.tables(), world);
        require_length(world.replications(), "there must be one state per replication", now);
        const nb::gil_scoped_release release;
        learn_online(learner, world, world.behaviour, first, count, start, now.data());
    });
}

void bind_learner(nb::module_& m) {
    m.def("learner_calls", [] {
        return std::make_pair(reinterpret_cast<uintptr_t>(&choose_by_address),
                              reinterpret_cast<uintptr_t>(&absorb_by_address));
    });
    nb::class_<Learner> learners(m, "Learner");
    bind_online<ModelSampler>(learners);
    bind_online<SimulatorSampler>(learners);
    learners
        .def("absorb",
             [](Learner& learner, int64_t first, Table<int32_t> states, Table<int32_t> pairs, Table<double> rewards,
                Table<int32_t> following) {
                 const Transitions seen =
                     transitions_of(learner.tables().replications, states, pairs, rewards, following);
                 require_possible(learner.tables(), seen);
                 const nb::gil_scoped_release release;
                 learner.absorb(first, seen);
             })
        .def("absorb_one",
             [](Learner& learner, int64_t first, int32_t state, int32_t pair, double reward, int32_t successor) {
                 require_possible(learner.tables(), {state, pair, successor, reward});
                 learner.absorb(first, {&state, &pair, &reward, &successor, 1});
             })
        .def("choose",
             [](const Learner& learner, int64_t replication, int64_t state, double u, double epsilon) {
                 const LearnerState& tables = learner.tables();
                 require(replication >= 0 && replication < tables.replications && state >= 0 && state < tables.n_states,
                         "state must be one of the world's");
                 return learner.choose(replication, state, u, epsilon);
             })
        .def_prop_ro("address", [](const Learner& learner) { return reinterpret_cast<uintptr_t>(&learner); });
}

Round round_of(const Refiner& refiner, const Table<double>& v, int64_t number, bool fresh) {
    require(static_cast<int64_t>(v.shape(0)) == refiner.tables().replications &&
                static_cast<int64_t>(v.shape(1)) == refiner.tables().n_states + 1,
            "v must have one entry per state and the end");
    return {v.data(), number, fresh};
}

template <class Sampler> void bind_rounds(nb::class_<Refiner>& refiners) {
    refiners.def("refine_all", [](Refiner& refiner, const BoundWorld<Sampler>& world, Table<double> v, int64_t number,
                                  bool fresh, int64_t first, Array<const int64_t> inner_steps) {
        require_same_size(refiner.tables(), world);
        require(static_cast<int64_t>(inner_steps.size()) == world.n_pairs() &&
                    *std::min_element(inner_steps.data(), inner_steps.data() + inner_steps.size()) >= 0,
                "inner_steps must have one number per pair");
        const Round round = round_of(refiner, v, number, fresh);
        const nb::gil_scoped_release release;
        refine_all(refiner, world, round, first, inner_steps.data());
    });
}

void bind_refiner(nb::module_& m) {
    nb::class_<Refiner> refiners(m, "Refiner");
    bind_rounds<ModelSampler>(refiners);
    bind_rounds<SimulatorSampler>(refiners);
    refiners.def("refine", [](Refiner& refiner, Table<double> v, int64_t number, bool fresh, int64_t pair,
                              Table<double> rewards, Table<int32_t> following) {
        const LearnerState& tables = refiner.tables();
        const int64_t length = length_of(tables.replications, following, rewards);
        require(pair >= 0 && pair < tables.n_pairs && length >= 1, "pair must be one of the world's");
        for (size_t at = 0; at < following.size(); ++at)
            require(following.data()[at] >= 0 && following.data()[at] <= tables.n_states,
                    "a transition must go to a state or the end");
        refiner.refine(round_of(refiner, v, number, fresh), pair, length - 1, rewards.data(), following.data());
    });
}

// The worst mean of samples in a Kullback-Leibler ball around their own distribution.
double worst_mean(const Constrained<KullbackLeibler>& ball, const std::vector<double>& p, const std::vector<double>& x,
                  double radius) {
    const double unknown[Constrained<KullbackLeibler>::MEMORY + 1] = {NOT_A_NUMBER, NOT_A_NUMBER};
    const Rows<double> row = make_rows<double>(p.data(), x.data(), static_cast<int64_t>(x.size()), 1);
    return row.lowest + solve_row(ball, row, radius, unknown, Accuracy::EXACT).value;
}

// The worst case of all samples minus the mean of those of the even and the odd ones.
double multilevel_difference(Numbers samples, double radius) {
    const Constrained<KullbackLeibler> ball{KullbackLeibler()};
    const size_t n = samples.size();
    require(n >= 2 && n % 2 == 0, "samples must come in pairs");
    std::vector<double> all(samples.data(), samples.data() + n), even(n / 2), odd(n / 2);
    for (size_t i = 0; i < n / 2; ++i) {
        even[i] = all[2 * i];
        odd[i] = all[2 * i + 1];
    }
    const std::vector<double> whole(n, 1.0 / static_cast<double>(n)), half(n / 2, 2.0 / static_cast<double>(n));
    return worst_mean(ball, whole, all, radius) -
           0.5 * (worst_mean(ball, half, even, radius) + worst_mean(ball, half, odd, radius));
}

}  // namespace

void bind_learning(nb::module_& m) {
    bind_records(m);
    bind_world(m);
    bind_learner(m);
    bind_refiner(m);
    m.def("multilevel_difference", &multilevel_difference);
    m.def("fill_alias", [](Offsets indptr, Numbers p, Array<double> keep, Array<int32_t> other) {
        AliasTable table;
        table.fill(indptr.data(), static_cast<int64_t>(indptr.size()) - 1, p.data());
        require(table.keep.size() == keep.size() && keep.size() == other.size(), "there must be one entry per outcome");
        std::copy(table.keep.begin(), table.keep.end(), keep.data());
        std::copy(table.other.begin(), table.other.end(), other.data());
    });
}

}  // namespace robustmdp
