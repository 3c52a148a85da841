// Where the mass of a row's entries may be moved, at a cost per unit of mass.
#pragma once

#include "lanes.hpp"

#include <vector>

namespace robustmdp {

constexpr int32_t STAYS = -1;

// A receiver: the best one at prices of a unit of cost below `price` and not below that of the next vertex.
struct Vertex {
    double price, cost, outcome;
    int32_t state;
};

// The lower convex hull of (cost, outcome) over the receivers of an entry, from staying to the lowest outcome.
class Hull {
public:
    Hull() { start(0.0); }

    void start(double outcome) { vertices_.assign(1, {INFINITE, 0.0, outcome, STAYS}); }

    // Receivers must come by rising cost.
    void extend(double cost, double outcome, int32_t state) {
        if (!(outcome < vertices_.back().outcome)) return;
        double price = INFINITE;
        while (!vertices_.empty()) {
            const Vertex& last = vertices_.back();
            if (cost > last.cost) {
                price = (last.outcome - outcome) / (cost - last.cost);
                if (price < last.price) break;
            }
            vertices_.pop_back();
        }
        vertices_.push_back({vertices_.empty() ? INFINITE : price, cost, outcome, state});
    }

    int64_t size() const { return static_cast<int64_t>(vertices_.size()); }
    const Vertex& operator[](int64_t k) const { return vertices_[k]; }

    // Whether a mass may take step k: the steps before it must leave something of the budget.
    bool has_step(int64_t k, double mass, double budget) const {
        return k < size() && mass * vertices_[k - 1].cost < budget;
    }

    // Where the steps lead that are worth more than the price.
    const Vertex& best(double price, double mass, double budget) const {
        int64_t k = 1;
        while (has_step(k, mass, budget) && vertices_[k].price > price) ++k;
        return vertices_[k - 1];
    }

private:
    std::vector<Vertex> vertices_;
};

// The hulls of a row's entries, and the steps along all of them: at a price, those that are worth more are taken.
struct Transport {
    std::vector<Hull> own;                     // where the row has outcomes of its own
    std::vector<const Hull*> hulls;            // of each entry
    std::vector<double> prices, costs, gains;  // of the steps, times the mass, in whole vectors
    double free_gain, highest_price, lowest;

    void make_room(int64_t entries) {
        if (static_cast<int64_t>(hulls.size()) >= entries) return;
        own.resize(entries);
        hulls.resize(entries);
    }

    // The steps along the hulls of entries with these masses and outcomes, each hull until it alone takes the budget.
    void list_steps(const double* p, const double* x, int64_t length, int64_t stride, double budget) {
        prices.clear(), costs.clear(), gains.clear();
        free_gain = highest_price = 0.0;
        lowest = INFINITE;
        for (int64_t j = 0; j < length; ++j) {
            const Hull& hull = *hulls[j];
            const double mass = p[j * stride];
            free_gain += mass * (x[j * stride] - hull[0].outcome);
            lowest = smaller(hull[hull.size() - 1].outcome, lowest);
            if (hull.size() > 1) highest_price = larger(hull[1].price, highest_price);
            for (int64_t k = 1; hull.has_step(k, mass, budget); ++k) {
                prices.push_back(hull[k].price);
                costs.push_back(mass * (hull[k].cost - hull[k - 1].cost));
                gains.push_back(mass * (hull[k - 1].outcome - hull[k].outcome));
            }
        }
        while (prices.size() % WIDTH) prices.push_back(0.0), costs.push_back(0.0), gains.push_back(0.0);
    }
};

// Work space for the transports of WIDTH rows.
struct TransportSpace {
    Transport rows[WIDTH];
    std::vector<int32_t> places;  // of a state among the entries of a row, from 1 on; 0 where it has none

    void make_room(int64_t entries, int64_t n_states) {
        for (Transport& row : rows) row.make_room(entries);
        if (static_cast<int64_t>(places.size()) <= n_states) places.assign(n_states + 1, 0);
    }
};

}  // namespace robustmdp
