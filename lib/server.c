/* A server as a login finds it; see server.h. */
#include "server.h"

#include <string.h>

#include "minmax.h"

#define SECOND INT64_C(1000000)

void evl_server_reset(struct server *server) {
    *server = (struct server){.inherited = true, .product = {.name = ""}};
    evl_native_reset(&server->native);
}

/* An uptime is in whole seconds, and may be one too many. */
void evl_server_learn(struct server *server, const struct info_server *info, int64_t now) {
    memcpy(server->run_id, info->run_id, sizeof(server->run_id));
    server->product = info->product;
    server->renews_many = info->renews_many;
    evl_native_learn(&server->native, info);
    if (info->uptime >= 0)
        server->started = now - (info->uptime - 1) * SECOND;
}

void evl_server_learn_data(struct server *server, const struct info_data *info) {
    memcpy(server->replid, info->replid, sizeof(server->replid));
    server->inherited = info->inherited;
    server->bare = info->bare;
}

/* An age that is negative is of a clock that went back; by one that is fast it is less than it seems. A history may be
 * older than this machine's clock: it began before that read 0. */
void evl_server_learn_age(struct server *server, int64_t age, int64_t now) {
    server->reigned_since = age >= 0 ? now - (age - age / 100) : now;
    if (server->reigned_since == 0) /* which would be none */
        server->reigned_since = -1;
}

/* It cannot be older than this one: its age is in whole seconds of a clock read at two moments. */
bool evl_server_sees_another(const struct server *server, int64_t id, int64_t age, int64_t passed) {
    return (id != -1 && server->id && id != server->id) || age > passed / SECOND + 2;
}

void evl_server_share(struct server *server) {
    server->shared = true;
    server->id = 0;
}

int64_t evl_server_clock(const struct server *server, int64_t now) {
    return server->clock.server + evl_max(now - server->clock.received, 0);
}

/* --- Before and now ----------------------------------------------------------------------------------------------- */

static bool server_differs(const char *before, const char *now) {
    return before[0] && now[0] && strcmp(before, now) != 0;
}

bool evl_server_is_same(const struct server *server, const struct server *before) {
    return server->run_id[0] && strcmp(server->run_id, before->run_id) == 0;
}

bool evl_server_is_other(const struct server *server, const struct server *before) {
    return server_differs(before->run_id, server->run_id);
}

/* A process gives the history of its data another name when its first replica comes, and again a while after its last
 * has gone, and has lost nothing by that: where it took over data, it names their history beside its own. */
bool evl_server_has_other_data(const struct server *server, const struct server *before) {
    return server_differs(before->replid, server->replid) && (server->inherited || !evl_server_is_same(server, before));
}
