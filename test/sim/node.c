/* The nodes; see node.h. */
#include "node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge.h"
#include "reach.h"
#include "socket.h"

static void listen_again(void *arg) {
    struct node *node = arg;

    node->refuses = false;
    sockets_listen(node->path, true);
    sockets_listen(node->other_path, true);
}

struct node *node_new(struct world *world, unsigned index) {
    struct node *node = calloc(1, sizeof(*node));

    node->world = world;
    node->index = index;
    node->server = sim_server_new((unsigned)draw(world));
    /* Clocks agree about the time of day as far as servers' do; nothing but the numbers of fences depends on it. */
    node->clock =
        (struct clock){world->now, INT64_C(1700000000) * SECOND + draw_between(world, 0, world->plan.unit / 8),
                       draw_between(world, -world->plan.drift_ppm, world->plan.drift_ppm)};
    node->open.happen = listen_again;
    node->open.arg = node;
    node->replaced_at = NEVER;
    snprintf(node->path, sizeof(node->path), SOCKETS_FOLDER "%u", index);
    snprintf(node->other_path, sizeof(node->other_path), SOCKETS_FOLDER "%u", index + NODES_MAX);
    listen_again(node);
    sim_server_watch(node_now(node), judge_watch, node);
    /* It has been running for long, or it would be excluded by those that count on several. */
    sim_server_set_time(node->server, node->clock.local - 3600 * SECOND);
    sim_server_restart(node->server, false, true);
    if (world->plan.replicas)
        node_replicate(node, REPLICAS_MAX);
    node->spares = world->plan.no_kill;
    if (node->spares)
        sim_server_refuse(node->server, "client|kill", "NOPERM this user has no permissions to run it", UINT32_MAX);
    return node;
}

void node_free(struct node *node) {
    agenda_set(&node->world->agenda, &node->open, NEVER);
    sockets_listen(node->path, false);
    sockets_listen(node->other_path, false);
    if (node->copy)
        sim_server_free(node->copy);
    sim_server_free(node->server);
    free(node);
}

sim_server *node_now(struct node *node) {
    sim_server_set_time(node->server, clock_read(&node->clock, node->world->now));
    return node->server;
}

void node_replicate(struct node *node, unsigned replicas) {
    for (unsigned i = 0; i <= node->replicas; i++)
        node->had[i] = node->world->now;
    node->replicas = replicas;
    sim_server_set_replicas(node->server, replicas);
}

bool node_had(const struct node *node, unsigned replicas, int64_t since) {
    return node->replicas >= replicas || node->had[replicas] >= since;
}

void node_refuse(struct node *node, int64_t until) {
    node->refuses = true;
    reach_away(node, until);
    sockets_listen(node->path, false);
    sockets_listen(node->other_path, false);
    agenda_set(&node->world->agenda, &node->open, until);
}

struct node *node_at(struct world *world, const char *path) {
    for (unsigned i = 0; i < world->plan.nodes; i++)
        if (strcmp(world->nodes[i]->path, path) == 0 || strcmp(world->nodes[i]->other_path, path) == 0)
            return world->nodes[i];
    return NULL;
}
