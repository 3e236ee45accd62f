/* The nodes; see node.h. */
#include "node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "judge.h"

static const char *folder;

void nodes_place(const char *where) {
    folder = where;
}

static void listen_again(void *arg) {
    struct node *node = arg;
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    memcpy(address.sun_path, node->path, sizeof(address.sun_path));
    (void)unlink(node->path);
    node->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (node->listener < 0 || bind(node->listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(node->listener, 64) != 0) {
        perror(node->path);
        abort();
    }
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
    snprintf(node->path, sizeof(node->path), "%s/%u", folder, index);
    listen_again(node);
    sim_server_watch(node_now(node), judge_watch, node);
    /* It has been running for long, or it would be excluded by those that count on several. */
    sim_server_set_time(node->server, node->clock.local - 3600 * SECOND);
    sim_server_restart(node->server, false, true);
    if (world->plan.no_kill)
        sim_server_refuse(node->server, "client|kill", "NOPERM this user has no permissions to run it", UINT32_MAX);
    node->refused = world->plan.no_kill;
    return node;
}

void node_free(struct node *node) {
    agenda_set(&node->world->agenda, &node->open, NEVER);
    if (node->listener >= 0)
        close(node->listener);
    (void)unlink(node->path);
    if (node->copy)
        sim_server_free(node->copy);
    sim_server_free(node->server);
    free(node);
}

sim_server *node_now(struct node *node) {
    sim_server_set_time(node->server, clock_read(&node->clock, node->world->now));
    return node->server;
}

void node_refuse(struct node *node, int64_t until) {
    if (node->listener >= 0)
        close(node->listener);
    node->listener = -1;
    agenda_set(&node->world->agenda, &node->open, until);
}

int node_accept(struct node *node) {
    return accept4(node->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

struct node *node_at(struct world *world, const char *path) {
    for (unsigned i = 0; i < world->plan.nodes; i++)
        if (strcmp(world->nodes[i]->path, path) == 0)
            return world->nodes[i];
    return NULL;
}
