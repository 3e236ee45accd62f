/* A lock server to the lease core; see server.h. Each function is what the command or script of its name does. */
#include "server.h"

#include <string.h>

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

/* The numbers besides are refused by whether the first is odd, as a clock would have it. */
static void draw_fence(struct server *server, uint8_t spare, int64_t clock, struct lease_answer *ret) {
    ret->fence = server->counter ? server->counter + 1 : clock;
    ret->spare = ret->fence % 2 ? 0 : spare;
    server->counter = ret->fence + ret->spare;
}

static enum lease_verdict acquire(struct server *server, const struct request *request, int64_t clock, int64_t grain,
                                  struct lease_answer *answer) {
    if (taken(server, clock))
        return LEASE_NO;
    set(server, request, clock, grain);
    if (request->fenced)
        draw_fence(server, request->spare, clock, answer);
    return LEASE_YES;
}

static int place_of(const struct server *server, unsigned ticket) {
    for (int i = 0; i < server->waiting; i++)
        if (server->line[i].ticket == ticket)
            return i;
    return -1;
}

bool server_waits(const struct server *server, unsigned ticket) {
    return place_of(server, ticket) >= 0;
}

static void leave(struct server *server, int place) {
    server->waiting--;
    memmove(server->line + place, server->line + place + 1, (size_t)(server->waiting - place) * sizeof *server->line);
    server->line[server->waiting] = (struct waiter){0};
}

/* The lock is free: the first who listens has it, and is told unless it is the one that asks. Its ticket, or 0. */
static unsigned grant(struct server *server, unsigned asker, int64_t clock, int64_t grain, struct grant_note *told) {
    struct lease_answer drawn = {0};

    while (server->waiting) {
        struct waiter first = server->line[0];
        leave(server, 0);
        if (first.ticket != asker && !(server->listens & 1U << first.channel))
            continue;
        server->token = first.token;
        set_expiry(server, first.ttl, clock, grain);
        if (first.ticket == asker)
            return asker;
        if (first.fenced)
            draw_fence(server, first.spare, clock, &drawn);
        *told = (struct grant_note){first, drawn.fence, drawn.spare};
        return first.ticket;
    }
    return 0;
}

static enum lease_verdict join(struct server *server, const struct request *request, int64_t clock, int64_t grain,
                               struct lease_answer *answer, struct grant_note *told) {
    if (server_has(server, request->token, clock)) {
        if (left_of(server, clock, grain) < request->ttl)
            set_expiry(server, request->ttl, clock, grain);
        if (request->fenced)
            draw_fence(server, request->spare, clock, answer);
        return LEASE_YES;
    }
    if (!server_waits(server, request->ticket))
        server->line[server->waiting++] = (struct waiter){
            .ttl = request->ttl,
            .token = (uint8_t)request->token,
            .ticket = request->ticket,
            .channel = request->channel,
            .spare = request->spare,
            .fenced = request->fenced,
        };
    if (taken(server, clock) || grant(server, request->ticket, clock, grain, told) != request->ticket)
        return LEASE_QUEUED;
    if (request->fenced)
        draw_fence(server, request->spare, clock, answer);
    return LEASE_YES;
}

static enum lease_verdict hand(struct server *server, const struct request *request, int64_t clock, int64_t grain,
                               struct grant_note *told) {
    if (server_has(server, request->token, clock)) {
        server->expires = 0;
        grant(server, 0, clock, grain, told);
        return LEASE_YES;
    }
    if (server_waits(server, request->ticket))
        leave(server, place_of(server, request->ticket));
    return LEASE_NO;
}

static enum lease_verdict prolong(struct server *server, const struct request *request, int64_t clock, int64_t grain,
                                  struct lease_answer *answer) {
    int64_t left = left_of(server, clock, grain);
    int64_t ttl = left;

    if (request->command == LEASE_REPLACE || request->command == LEASE_REFRESH ||
        (request->command != LEASE_ADD && left < request->ttl))
        ttl = request->ttl;
    else if (request->command == LEASE_ADD && left != LEASE_NEVER)
        ttl = left + request->ttl;
    if (ttl != left)
        set_expiry(server, ttl, clock, grain);
    answer->ttl = ttl;
    return LEASE_YES;
}

enum lease_verdict server_run(struct server *server, const struct request *request, int64_t clock, int64_t grain,
                              struct lease_answer *answer, struct grant_note *told) {
    bool has = server_has(server, request->token, clock);

    switch (request->command) {
    case LEASE_NOTHING:
        break;
    case LEASE_ACQUIRE:
        if (request->ticket)
            return join(server, request, clock, grain, answer, told);
        return acquire(server, request, clock, grain, answer);
    case LEASE_RAISE:
        if (server->counter < request->fence)
            server->counter = request->fence;
        return LEASE_YES;
    case LEASE_ADOPT:
        answer->ttl = has ? left_of(server, clock, grain) : 0;
        return has ? LEASE_YES : LEASE_NO;
    case LEASE_RESTORE:
    case LEASE_REARM:
    case LEASE_MEND:
        if (!taken(server, clock)) {
            set(server, request, clock, grain);
            answer->ttl = request->ttl;
            return LEASE_YES;
        }
        return has ? prolong(server, request, clock, grain, answer) : LEASE_NO;
    case LEASE_RENEW:
    case LEASE_REFRESH:
    case LEASE_ADD:
    case LEASE_REPLACE:
        return has ? prolong(server, request, clock, grain, answer) : LEASE_NO;
    case LEASE_RELEASE:
        return hand(server, request, clock, grain, told);
    }
    return LEASE_UNKNOWN;
}
