// ||P - p|| <= radius: nature follows the projection of p - theta x onto the distributions until it leaves the ball.
//
// On the successors A that keep mass, with n = |A|, m the plain mean of d = x - min x over A, and `lost` the mass of the
// others, P_j = p_j + theta (m - d_j) + lost/n. As theta grows successors leave A, and never return: what leaves is above
// the mean, and the mean falls. So dropping what would be negative and solving for theta again ends after a few passes.
#pragma once

#include "solved.hpp"

namespace robustmdp {

struct Euclidean : SetTraits {
    static constexpr bool ADDS = true, ALONE = true;

    static Room room(double radius) { return radius == 0.0 ? Room::NONE : Room::SOME; }
    double multiplier(const Solved<double>& solved) const {
        return solved.weight == INFINITE ? 0.0 : solved.distance / solved.weight;
    }

    // P_j = max(0, p_j + shift - theta d_j): `distance` is the shift, `weight` is theta, infinite where only minimisers
    // keep mass.
    Solved<double> solve_alone(const Rows<double>& row, double radius, Accuracy) const {
        const double limit = smaller(radius, 2.0) * smaller(radius, 2.0);
        Kept kept = start(row);
        double theta = 0.0, shift = 0.0;
        for (int64_t pass = 0; pass <= row.length; ++pass) {
            if (!(kept.bend > 0.0)) return {0.0, 0.0, INFINITE, 1.0, true, Room::SOME};
            theta = root(larger(limit - kept.squares - kept.lost * kept.lost / kept.count, 0.0) / kept.bend);
            shift = theta * kept.mean + kept.lost / kept.count;
            const Kept next = keep(row, [&](int64_t j) { return row.mass(j) + (shift - theta * row.rise(j)) > 0.0; });
            if (next.count == kept.count || next.count == 0.0) break;
            kept = next;
        }
        double value = 0.0;
        for (int64_t j = 0; j < row.length; ++j)
            value += larger(row.mass(j) + (shift - theta * row.rise(j)), 0.0) * row.rise(j);
        return {value, shift, theta, 1.0, true, Room::SOME};
    }

    // Below: the dual eta - radius^2/(2 theta) + sum_j min over P_j >= 0 of P_j (d_j - eta) + (P_j - p_j)^2/(2 theta).
    // Above: the value of the answer, moved back into the ball.
    Bounds<double> bounds(const Rows<double>& row, double radius, const Solved<double>& solved, double terms) const {
        const double theta = solved.weight, shift = solved.distance, limit = smaller(radius, 2.0);
        if (theta == INFINITE) return within_trivial_bounds(row, terms, 0.0, mean_slack(row, terms));
        const double eta = shift / theta;
        double dual = eta - limit * limit / (2.0 * theta), size = magnitude(eta) + limit * limit / (2.0 * theta);
        double squares = 0.0, sum = 0.0;
        for (int64_t j = 0; j < row.length; ++j) {
            const double p = row.mass(j), d = row.rise(j), change = larger(shift - theta * d, -p);
            const double part = (p + change) * (d - eta) + change * change / (2.0 * theta);
            dual += part;
            size += magnitude(part);
            squares += change * change;
            sum += p + change;
        }
        const double outside = larger(root(squares) / limit - 1.0, 0.0) + magnitude(sum - 1.0) + terms * EPS;
        const double slack = 4.0 * terms * EPS * size;
        return within_trivial_bounds(row, terms, dual - slack,
                                     solved.value + mean_slack(row, terms) + outside * row.spread);
    }

    double respond(const Rows<double>& row, double, const Solved<double>& solved, double* out, int64_t stride) const {
        double total = 0.0, count = 0.0, lost = 0.0;
        const bool vertex = solved.weight == INFINITE;
        for (int64_t j = 0; j < row.length; ++j) {
            const bool lowest = row.rise(j) == 0.0;
            lost += lowest ? 0.0 : row.mass(j);
            count += lowest ? 1.0 : 0.0;
        }
        for (int64_t j = 0; j < row.length; ++j) {
            const double p = row.mass(j), d = row.rise(j);
            const double at_vertex = d == 0.0 ? p + lost / count : 0.0;
            out[j * stride] = vertex ? at_vertex : larger(p + (solved.distance - solved.weight * d), 0.0);
            total += out[j * stride];
        }
        for (int64_t j = 0; j < row.length; ++j) out[j * stride] /= total;
        return 0.0;
    }

    // out = -dP_j/dx_j at fixed multipliers
    void sensitivity(const Rows<double>& row, const Solved<double>& solved, double* out) const {
        for (int64_t j = 0; j < row.length; ++j) {
            const bool keeps = row.mass(j) + (solved.distance - solved.weight * row.rise(j)) > 0.0;
            out[j] = keeps ? solved.weight : 0.0;
        }
    }

    // How steeply the worst case falls with the budget.
    double steepness(const Rows<double>& row, double radius, const Solved<double>& solved) const {
        if (radius > 0.0) return solved.weight == INFINITE ? 0.0 : radius / solved.weight;
        return root(start(row).bend);
    }

    // The distance of the nearest distribution on the minimisers.
    double cost_of_vertex(const Rows<double>& row) const {
        const Kept kept = keep(row, [&](int64_t j) { return row.rise(j) == 0.0; });
        return root(kept.squares + kept.lost * kept.lost / kept.count);
    }

    // The length of nature's change at a price; out = its answer.
    double respond_to_price(const Rows<double>& row, double price, double* out, int64_t stride) const {
        respond(row, 0.0, solve_price(row, price), out, stride);
        return distance(row, out, stride);
    }

    // E_P d + price |P - p| >= min over j of (d_j + price q_j) - price q p for every q of length at most 1: that of the
    // answer's change, or, where nature stays, d measured from its mean.
    double lower_price(const Rows<double>& row, double price, double terms) const {
        const Solved<double> at = solve_price(row, price);
        const Kept lowest = keep(row, [&](int64_t j) { return row.rise(j) == 0.0; });
        const double centre = start(row).mean;
        const auto change = [&](int64_t j) {
            const double d = row.rise(j), p = row.mass(j);
            if (at.weight == INFINITE) return d == 0.0 ? lowest.lost / lowest.count : -p;
            return at.weight == 0.0 ? centre - d : larger(at.distance - at.weight * d, -p);
        };
        double squares = 0.0;
        for (int64_t j = 0; j < row.length; ++j) squares = fused(change(j), change(j), squares);
        if (squares == 0.0) return row.mean_rise - mean_slack(row, terms);
        const double length = at.weight == 0.0 ? larger(root(squares), price) : root(squares);
        const double scale = price / length;
        double least = INFINITE, mean = 0.0;
        for (int64_t j = 0; j < row.length; ++j) {
            least = smaller(row.rise(j) + scale * change(j), least);
            mean += row.mass(j) * change(j);
        }
        return least - scale * mean - 4.0 * terms * EPS * (row.spread + price);
    }

    double distance(const Rows<double>& row, const double* out, int64_t stride) const {
        double total = 0.0;
        for (int64_t j = 0; j < row.length; ++j) {
            const double change = out[j * stride] - row.mass(j);
            total = fused(change, change, total);
        }
        return root(total);
    }

private:
    // The answer to a price: its length is price * theta, so that theta^2 (price^2 - bend) = squares + lost^2/n on the
    // successors that keep mass.
    static Solved<double> solve_price(const Rows<double>& row, double price) {
        Kept kept = start(row);
        double theta = 0.0, shift = 0.0;  // of the line below which a successor has left
        const auto stays = [&](int64_t j) { return row.mass(j) + (shift - theta * row.rise(j)) > 4.0 * EPS; };
        for (int64_t pass = 0; pass <= row.length && kept.bend > 0.0; ++pass) {
            const double rest = price * price - kept.bend, shared = kept.lost / kept.count;
            double leaving = INFINITE;  // theta at which the next one has no mass left
            for (int64_t j = 0; j < row.length; ++j)
                if (const double fall = row.rise(j) - kept.mean; fall > 0.0 && stays(j))
                    leaving = smaller(larger((row.mass(j) + shared) / fall, theta), leaving);
            const double wanted = rest > 0.0 ? root((kept.squares + kept.lost * shared) / rest) : INFINITE;
            const bool ends = wanted <= leaving;
            theta = ends ? larger(wanted, theta) : leaving;
            shift = theta * kept.mean + shared;
            if (ends) break;
            kept = keep(row, stays);
        }
        return {0.0, shift, kept.bend > 0.0 ? theta : INFINITE, 1.0, true, Room::SOME};
    }

    // What is known of the successors that keep mass.
    struct Kept {
        double count, mean, bend;  // |A|, and the mean and the sum of squared deviations of d on it
        double lost, squares;      // sums of p and p^2 over the others
    };

    template <class Keeps> static Kept keep(const Rows<double>& row, Keeps keeps) {
        Kept kept{};
        double total = 0.0;
        for (int64_t j = 0; j < row.length; ++j) {
            if (keeps(j)) {
                kept.count += 1.0;
                total += row.rise(j);
            } else {
                kept.lost += row.mass(j);
                kept.squares += row.mass(j) * row.mass(j);
            }
        }
        kept.mean = total / kept.count;
        for (int64_t j = 0; j < row.length; ++j)
            if (keeps(j)) kept.bend += (row.rise(j) - kept.mean) * (row.rise(j) - kept.mean);
        return kept;
    }

    // Near the model: what has mass, and of what has none whatever is below the mean of all that is kept.
    static Kept start(const Rows<double>& row) {
        double ceiling = INFINITE;
        Kept kept = keep(row, [&](int64_t j) { return row.mass(j) > 0.0 || row.rise(j) < ceiling; });
        for (int64_t pass = 0; pass <= row.length && row.may_grow && kept.mean < ceiling; ++pass) {
            ceiling = kept.mean;
            const Kept next = keep(row, [&](int64_t j) { return row.mass(j) > 0.0 || row.rise(j) < ceiling; });
            if (next.count == kept.count) break;
            kept = next;
        }
        return kept;
    }
};

}  // namespace robustmdp
