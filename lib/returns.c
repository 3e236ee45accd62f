/* A node is back, and all hear of it; see returns.h. */
#include "returns.h"

#include "prefetch.h"

static struct owing_place returns_place_of(struct tenure *tenure) {
    const struct request *request = evl_tenure_request(tenure, 0);

    return (struct owing_place){request->node, request->flying > 0};
}

/* A ghost goes where its token may be, and not where its slot is. */
static struct comeback returns_of_gate(struct tenure *tenure) {
    if (evl_tenure_is_ghost(tenure))
        return (struct comeback){.heard = false};
    return evl_owing_moved(&evl_tenure_rest(tenure)->owing, returns_place_of(tenure),
                           evl_node_index(evl_handle_home(tenure->lock)));
}

/* What a tenure hears of the node. Each has one vote in a cluster, and one for each node otherwise. */
static struct comeback returns_of(struct tenure *tenure, const struct node *node, bool in_cluster) {
    unsigned index = evl_node_index(node);

    if (!in_cluster)
        return (struct comeback){true, true, node->settled, node->replaced};
    if (index == CLUSTER_GATE)
        return returns_of_gate(tenure);
    return evl_owing_back(&evl_tenure_rest(tenure)->owing, returns_place_of(tenure),
                          (struct owing_return){index, node->settled, node->replaced});
}

void evl_returns_begin(struct tenures *tenures, struct node *node) {
    evl_round_begin(&tenures->rounds, &node->round);
}

/* One that is begun meanwhile need not be told. */
bool evl_returns_go_on(struct tenures *tenures, struct node *node, int64_t now) {
    bool in_cluster = tenures->deployment.cluster;

    for (int i = 0; i < TOLD_A_RING; i++) {
        struct round_member *member = evl_round_take(&tenures->rounds, &node->round);
        struct comeback comeback;
        if (!member)
            return false;
        if (node->round.next)
            evl_prefetch(node->round.next, 0, tenures->pool.size);
        comeback = returns_of(evl_tenure_of_member(member), node, in_cluster);
        if (comeback.heard)
            evl_tenure_hear(evl_tenure_of_member(member), in_cluster ? 0 : evl_node_index(node), &comeback, now);
    }
    return true;
}

/* It happens once in the life of a master, and so at one go. */
void evl_returns_forget(struct tenures *tenures, struct node *node) {
    int64_t now = evl_turn_now(&tenures->deployment.turn);
    struct round_member *member;

    evl_round_begin(&tenures->rounds, &node->round);
    while ((member = evl_round_take(&tenures->rounds, &node->round))) {
        struct tenure *tenure = evl_tenure_of_member(member);
        struct comeback comeback =
            evl_owing_gone(&evl_tenure_rest(tenure)->owing, returns_place_of(tenure).flying, evl_node_index(node));
        if (comeback.heard)
            evl_tenure_hear(tenure, 0, &comeback, now);
    }
}
