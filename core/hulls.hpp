// Where the mass of a row's entries may be moved, at a cost per unit of mass.
#pragma once

#include "lanes.hpp"

#include <algorithm>
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

    const Vertex& best(double price) const {
        const auto cheaper = [price](const Vertex& vertex) { return vertex.price > price; };
        return *(std::partition_point(vertices_.begin() + 1, vertices_.end(), cheaper) - 1);
    }

    // The price from which on nothing is moved.
    double highest_price() const { return vertices_.size() > 1 ? vertices_[1].price : 0.0; }
    double lowest() const { return vertices_.back().outcome; }

private:
    std::vector<Vertex> vertices_;
};

// Work space for the hulls of WIDTH rows.
struct HullSpace {
    int64_t longest_row = 0;
    std::vector<Hull> own;              // of rows with outcomes of their own
    std::vector<const Hull*> of_entry;  // of entry j of lane l at l * longest_row + j
    std::vector<int32_t> places;        // of a state among the entries of a row, from 1 on; 0 where it has none

    void make_room(int64_t entries, int64_t n_states) {
        if (longest_row >= entries && static_cast<int64_t>(places.size()) > n_states) return;
        longest_row = entries;
        own.resize(WIDTH * entries);
        of_entry.resize(WIDTH * entries);
        places.assign(n_states + 1, 0);
    }
};

}  // namespace robustmdp
