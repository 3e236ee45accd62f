/*
 * evlock's side of the interop tests: a program that a script steers by lines. It reads commands, one a line, and
 * writes what comes of them; it decides nothing and holds a few handles, called by number.
 *
 *     peer URL
 *     new 0 TTL_MS RENEWAL QUEUE NAME makes handle 0; RENEWAL and QUEUE are 1 or 0
 *     try 0, acquire 0, cancel 0, release 0, extend 0 MS, add 0 MS, adopt 0 TOKEN, break 0, locked 0, owned 0
 *     held 0, export 0                answered at once
 *
 * The lines that it writes: "returned VERB 0 STATUS" after each command, "ended VERB 0 STATUS VALUE" when a callback
 * came, "lost 0 REASON", and "token 0 TOKEN" before an export has returned. It ends with its input.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>
#include <event2/event.h>

#include <evlock/evlock.h>
#include <evlock/libevent.h>

enum { HANDLES = 4, VERBS = 13 };

struct verb {
    const char *name;
    int (*run)(int number, const char *rest, void *arg);
};

/* What a callback is told about its call: where it is says which verb and which handle. */
static char calls[VERBS][HANDLES];

static struct event_base *base;
static struct evbuffer *input;
static evlock_client *client;
static evlock *handles[HANDLES];
static const struct verb verbs[VERBS];

static void tell(int status, bool yes, void *arg) {
    long place = (char *)arg - &calls[0][0];
    printf("ended %s %ld %d %d\n", verbs[place / HANDLES].name, place % HANDLES, status, yes);
}

static void tell_end(evlock *lock, int status, void *arg) {
    (void)lock;
    tell(status, false, arg);
}

/* Whatever of the two was asked for. */
static void tell_answer(evlock *lock, int status, const evlock_answer *answer, void *arg) {
    (void)lock;
    tell(status, answer && (answer->locked || answer->owned), arg);
}

static void tell_lost(evlock *lock, int reason, void *arg) {
    (void)lock;
    printf("lost %ld %d\n", (long)((char *)arg - calls[0]), reason);
}

/* --- The verbs ---------------------------------------------------------------------------------------------------- */

static int make(int number, const char *rest, void *arg) {
    evlock_options options = {.size = sizeof(evlock_options)};
    long long ttl, renewal, queue;
    int name = 0;
    (void)arg;
    if (sscanf(rest, "%lld %lld %lld %n", &ttl, &renewal, &queue, &name) != 3 || !rest[name])
        return EVLOCK_EINVAL;
    options.ttl_ms = ttl;
    options.auto_renewal = renewal;
    options.wait = queue ? EVLOCK_WAIT_QUEUE : EVLOCK_WAIT_POLL;
    options.retry_delay_ms = 20;
    options.on_lost = tell_lost;
    options.arg = &calls[0][number];
    evlock_free(handles[number]);
    handles[number] = NULL;
    return evlock_new(&handles[number], client, rest + name, EVLOCK_CSTRING, &options);
}

static int try(int number, const char *rest, void *arg) {
    evlock_acquire_options options = {.size = sizeof(evlock_acquire_options)};
    (void)rest;
    options.max_attempts = EVLOCK_TRY;
    return evlock_acquire(handles[number], &options, tell_end, arg);
}

static int acquire(int number, const char *rest, void *arg) {
    (void)rest;
    return evlock_acquire(handles[number], NULL, tell_end, arg);
}

static int cancel(int number, const char *rest, void *arg) {
    (void)rest;
    (void)arg;
    return evlock_cancel(handles[number]);
}

static int release(int number, const char *rest, void *arg) {
    (void)rest;
    return evlock_release(handles[number], tell_end, arg);
}

static int extend(int number, const char *rest, void *arg) {
    return evlock_extend(handles[number], atoll(rest), EVLOCK_EXTEND_REPLACE, tell_end, arg);
}

static int add(int number, const char *rest, void *arg) {
    return evlock_extend(handles[number], atoll(rest), EVLOCK_EXTEND_ADD, tell_end, arg);
}

static int adopt(int number, const char *rest, void *arg) {
    return evlock_adopt(handles[number], rest, EVLOCK_CSTRING, tell_end, arg);
}

static int force(int number, const char *rest, void *arg) {
    (void)rest;
    return evlock_break(handles[number], tell_end, arg);
}

static int locked(int number, const char *rest, void *arg) {
    (void)rest;
    return evlock_query(handles[number], EVLOCK_QUERY_LOCKED, tell_answer, arg);
}

static int owned(int number, const char *rest, void *arg) {
    (void)rest;
    return evlock_query(handles[number], EVLOCK_QUERY_OWNED, tell_answer, arg);
}

static int held(int number, const char *rest, void *arg) {
    (void)rest;
    (void)arg;
    return evlock_is_held(handles[number]);
}

static int export(int number, const char *rest, void *arg) {
    char token[129];
    size_t len;
    int status = evlock_export(handles[number], token, sizeof(token) - 1, &len);
    (void)rest;
    (void)arg;
    if (status == EVLOCK_OK)
        printf("token %d %.*s\n", number, (int)len, token);
    return status;
}

static const struct verb verbs[VERBS] = {
    {"new", make},      {"try", try},   {"acquire", acquire}, {"cancel", cancel}, {"release", release},
    {"extend", extend}, {"add", add},   {"adopt", adopt},     {"break", force},   {"locked", locked},
    {"owned", owned},   {"held", held}, {"export", export},
};

/* --- The input ---------------------------------------------------------------------------------------------------- */

static void obey(const char *line) {
    char name[16];
    int number, rest = 0;
    if (sscanf(line, "%15s %d %n", name, &number, &rest) != 2 || number < 0 || number >= HANDLES) {
        printf("unknown: %s\n", line);
        return;
    }
    for (int i = 0; i < VERBS; i++)
        if (strcmp(name, verbs[i].name) == 0)
            printf("returned %s %d %d\n", name, number, verbs[i].run(number, line + rest, &calls[i][number]));
}

static void on_input(evutil_socket_t fd, short what, void *arg) {
    char *line;
    (void)what;
    (void)arg;
    if (evbuffer_read(input, fd, -1) <= 0)
        event_base_loopbreak(base);
    while ((line = evbuffer_readln(input, NULL, EVBUFFER_EOL_LF))) {
        obey(line);
        free(line);
    }
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    base = event_base_new();
    input = evbuffer_new();
    if (argc != 2 || !base || !input || evlock_client_new_libevent(&client, base, argv[1], NULL) != EVLOCK_OK) {
        fprintf(stderr, "usage: peer URL\n");
        return 2;
    }
    struct event *event = event_new(base, 0, EV_READ | EV_PERSIST, on_input, NULL);
    if (!event || event_add(event, NULL))
        return 2;
    event_base_dispatch(base);
    for (int i = 0; i < HANDLES; i++)
        evlock_free(handles[i]);
    evlock_client_free(client);
    event_base_loop(base, EVLOOP_NONBLOCK);
    event_free(event);
    evbuffer_free(input);
    event_base_free(base);
    return 0;
}
