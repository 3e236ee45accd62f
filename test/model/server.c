/* A lock server to the lease core; see server.h. Each function is what the command or script of its name does. */
#include "server.h"

#define MS INT64_C(1000)

static bool taken(const struct server *server, int64_t clock) {
    return clock < server->expires;
}

bool server_has(const struct server *server, int token, int64_t clock) {
    return server->token == token && taken(server, clock);
}

static void set_expiry(struct server *server, int64_t ttl, int64_t clock, int64_t grain) {
    server->expires = ttl == LEASE_NEVER ? LEASE_NEVER : clock - grain + ttl;
}

/* In whole milliseconds, since both the expiry and the server's reading of its clock are. */
static int64_t left_of(const struct server *server, int64_t clock, int64_t grain) {
    return server->expires == LEASE_NEVER ? LEASE_NEVER : (server->expires - clock + grain) / MS * MS;
}

static void set(struct server *server, const struct request *request, int64_t clock, int64_t grain) {
    server->token = request->token;
    set_expiry(server, request->ttl ? request->ttl : LEASE_NEVER, clock, grain);
}

static enum lease_verdict acquire(struct server *server, const struct request *request, int64_t clock, int64_t grain,
                                  struct lease_answer *answer) {
    if (taken(server, clock))
        return LEASE_NO;
    set(server, request, clock, grain);
    server->counter = server->counter ? server->counter + 1 : clock;
    answer->fence = server->counter;
    return LEASE_YES;
}

static enum lease_verdict prolong(struct server *server, const struct request *request, int64_t clock, int64_t grain,
                                  struct lease_answer *answer) {
    int64_t left = left_of(server, clock, grain);
    int64_t ttl = left;

    if (request->command == LEASE_REPLACE || (request->command != LEASE_ADD && left < request->ttl))
        ttl = request->ttl;
    else if (request->command == LEASE_ADD && left != LEASE_NEVER)
        ttl = left + request->ttl;
    if (ttl != left)
        set_expiry(server, ttl, clock, grain);
    answer->ttl = ttl;
    return LEASE_YES;
}

enum lease_verdict server_run(struct server *server, const struct request *request, int64_t clock, int64_t grain,
                              struct lease_answer *answer) {
    bool has = server_has(server, request->token, clock);

    switch (request->command) {
    case LEASE_NOTHING:
        break;
    case LEASE_ACQUIRE:
        return acquire(server, request, clock, grain, answer);
    case LEASE_RAISE:
        if (server->counter < request->fence)
            server->counter = request->fence;
        return LEASE_YES;
    case LEASE_ADOPT:
        answer->ttl = has ? left_of(server, clock, grain) : 0;
        return has ? LEASE_YES : LEASE_NO;
    case LEASE_REARM:
        if (!taken(server, clock)) {
            set(server, request, clock, grain);
            answer->ttl = request->ttl;
            return LEASE_YES;
        }
        return has ? prolong(server, request, clock, grain, answer) : LEASE_NO;
    case LEASE_RENEW:
    case LEASE_ADD:
    case LEASE_REPLACE:
        return has ? prolong(server, request, clock, grain, answer) : LEASE_NO;
    case LEASE_RELEASE:
        if (has)
            server->expires = 0;
        return has ? LEASE_YES : LEASE_NO;
    }
    return LEASE_UNKNOWN;
}
