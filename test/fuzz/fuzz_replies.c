/*
 * Replies: a hostile server against a client with calls of every kind pending, on one node or three, with second
 * connections for replicas and a connection that listens for grants. The input is a program: what the user calls, also
 * from inside callbacks; what each node says, fitting or not, whole or in pieces; how time passes. Promised whatever is
 * said: each call ends in one callback, later; nothing is held that was not granted, by an answer or by a message with
 * the ticket of a waiter that waits, or not lost after it was; fences grow; nothing is left.
 */
#include <stdbool.h>

#include <evlock/evlock.h>

#include "../unit/counted.h"
#include "../urls.h"
#include "input.h"
#include "loop.h"
#include "server.h"

enum { HANDLES = 3, CALLS = 256 };

static const char password[] = "s3cr3t-pw";

struct handle {
    evlock *lock;
    bool granted;                /* as the user was told, and not taken back */
    bool losable;                /* granted, and no end was told: a loss may be, also when the next acquire has begun */
    bool gone;                   /* freed: nothing may be told of it but ends, with NULL */
    bool affirmed[SERVER_NODES]; /* whether each node said anything since the acquire */
    int64_t longest_ms; /* of a lease as it is granted; 0: no limit, since it may be renewed before it is told */
    uint64_t fence;     /* the last that its name was given */
};

struct promise {
    struct handle *handle;
    bool grants, adopts, told;
    bool fenced;
    unsigned what; /* a query asks for */
};

static struct loop loop;
static struct server server;
static struct input input;
static evlock_client *client;
static struct handle handles[HANDLES];
static struct promise promises[CALLS];
static struct {
    unsigned calls, told, nodes;
    unsigned depth; /* of calls in callbacks */
    bool calling;   /* the library: nothing may be told now */
    bool closing, closed;
    bool secret;   /* the input does not have the password, which so may be nowhere but in what is wiped */
    evlock *body;  /* the handle of a run whose body goes on */
    void *body_of; /* and its argument */
    unsigned runs, runs_told;
} run;

/* Arguments of runs whose handle is their own. */
enum { OWNS = 4096, value_of_body = 7 };
static char owns[OWNS];

static void call_something(void);
static void list(const evlock_cursor *from);

/* --- What is told ------------------------------------------------------------------------------------------------- */

static void check_words(const char *words) {
    check(!run.secret || !strstr(words, password));
    for (; *words; words++)
        check((unsigned char)*words >= ' ' && *words != 0x7f);
}

static void check_status(int status) {
    check(status <= 0 && strcmp(evlock_strerror(status), evlock_strerror(12345)) != 0);
    check_words(evlock_last_error());
}

/* Some callbacks call again from inside. */
static void reenter(void) {
    if (run.depth++ < 3 && take_byte(&input) % 4 == 0)
        call_something();
    run.depth--;
}

static void check_told(struct promise *promise, const evlock *lock, int status) {
    check(!run.calling);
    check(!promise->told);
    promise->told = true;
    run.told++;
    check(lock ? lock == promise->handle->lock : !promise->grants || status != EVLOCK_OK);
    check_status(status);
}

static void on_grant(const struct promise *promise, evlock *lock) {
    struct handle *handle = promise->handle;
    unsigned affirmed = 0;

    check(evlock_is_held(lock) && evlock_remaining_ms(lock) >= 0);
    for (unsigned i = 0; i < run.nodes; i++)
        affirmed += handle->affirmed[i];
    check(affirmed >= run.nodes / 2 + 1);
    check(promise->adopts || handle->longest_ms == 0 || evlock_remaining_ms(lock) <= handle->longest_ms);
    handle->granted = handle->losable = true;
    if (!promise->fenced)
        return;
    check(evlock_fence(lock) > handle->fence);
    handle->fence = evlock_fence(lock);
}

static void on_end(evlock *lock, int status, void *arg) {
    struct promise *promise = arg;

    check_told(promise, lock, status);
    if (promise->grants && status == EVLOCK_OK && lock)
        on_grant(promise, lock);
    reenter();
}

/* What was not asked for is not there, and what is told of the lock fits together. */
static void check_answer(unsigned what, const evlock_answer *answer) {
    bool held = answer->locked || answer->owned || answer->ttl_ms || answer->holder_len;

    check(answer->holder && answer->holder[answer->holder_len] == '\0');
    check(what & EVLOCK_QUERY_LOCKED ? answer->locked == held : !answer->locked);
    check(what & EVLOCK_QUERY_TTL ? (answer->ttl_ms != 0) == held : !answer->ttl_ms);
    check(answer->ttl_ms >= EVLOCK_NO_EXPIRY);
    check(what & EVLOCK_QUERY_OWNED || !answer->owned);
    check(what & EVLOCK_QUERY_HOLDER || answer->holder_len == 0);
    check(what & EVLOCK_QUERY_WAITERS ? answer->waiters >= 0 : !answer->waiters);
    check(what & EVLOCK_QUERY_PLACE ? answer->place >= 0 : !answer->place);
}

static void on_answer(evlock *lock, int status, const evlock_answer *answer, void *arg) {
    struct promise *promise = arg;

    check_told(promise, lock, status);
    check((status == EVLOCK_OK) == (answer != NULL));
    if (answer)
        check_answer(promise->what, answer);
    reenter();
}

/* It goes on for as long as there are calls left. */
static void on_page(evlock_client *told, int status, const evlock_page *page, void *arg) {
    check_told(arg, NULL, status);
    check(!told || told == client);
    check((status == EVLOCK_OK) == (page != NULL));
    for (size_t i = 0; page && i < page->count; i++)
        check(strlen(page->names[i].data) <= page->names[i].len);
    if (page && page->more && told && !run.closing && run.calls + 1 < CALLS) {
        run.calling = true;
        list(&page->next);
        run.calling = false;
    }
    reenter();
}

static void on_lost(evlock *lock, int reason, void *arg) {
    struct handle *handle = arg;

    check(!run.calling && !run.closing && lock && lock == handle->lock);
    check(handle->losable);
    check(!evlock_is_held(lock));
    check(reason == EVLOCK_EEXPIRED || reason == EVLOCK_ENOTOWNED || reason == EVLOCK_EDATALOSS ||
          reason == EVLOCK_EMAXHOLD);
    handle->granted = handle->losable = false;
    reenter();
}

static void on_risk(evlock *lock, int trouble, void *arg) {
    struct handle *handle = arg;

    check(!run.calling && lock == handle->lock && handle->granted && evlock_remaining_ms(lock) >= 0);
    if (run.nodes > 1)
        check(trouble == EVLOCK_EQUORUM);
    else
        check(trouble <= EVLOCK_EUNREACHABLE && trouble >= EVLOCK_EPROTOCOL);
    reenter();
}

static void on_connection(evlock_client *told, enum evlock_connection state, int status, void *arg) {
    (void)arg;
    check(!run.calling && told == client);
    check(state >= EVLOCK_CONNECTING && state <= EVLOCK_AWAY && (state == EVLOCK_AWAY) == (status != EVLOCK_OK));
    check_status(status);
    reenter();
}

static void on_log(enum evlock_log_level level, const char *line, void *arg) {
    (void)level, (void)arg;
    check_words(line);
}

static void on_closed(int status, void *arg) {
    (void)arg;
    check(!run.calling && run.closing && !run.closed);
    check_status(status);
    run.closed = true;
    client = NULL;
}

/* --- What is called ----------------------------------------------------------------------------------------------- */

static struct promise *promise_of(struct handle *handle) {
    struct promise *promise = &promises[run.calls];

    *promise = (struct promise){.handle = handle};
    return promise;
}

/* The end of a call: one that was refused tells nothing. */
static int called(struct promise *promise, int status) {
    run.calling = false;
    check_status(status);
    run.calls += promise && status == EVLOCK_OK;
    return status;
}

static const char *name_of(const struct handle *handle) {
    static const char *const names[HANDLES] = {"a", "b", "c"};

    return names[handle - handles];
}

static void asks_for_grant(struct handle *handle, struct promise *promise) {
    promise->grants = true;
    for (unsigned i = 0; i < run.nodes; i++)
        handle->affirmed[i] = server_mumbles(&server, i);
}

static void begun(struct handle *handle) {
    handle->granted = false;
    server_forget(&server, name_of(handle));
}

static void acquire(struct handle *handle) {
    static const char tokens[HANDLES][8] = {"token-a", "token-b", "token-c"};
    evlock_acquire_options options = {.size = sizeof(evlock_acquire_options)};
    struct promise *promise = promise_of(handle);
    struct handle before = *handle;
    uint8_t how = take_byte(&input);

    promise->fenced = how & 1;
    options.fence = how & 1 ? EVLOCK_ON : EVLOCK_INHERIT;
    if (how & 2)
        options.max_attempts = 1 + (how >> 5);
    if (how & 4)
        options.token = tokens[handle - handles], options.token_len = EVLOCK_CSTRING;
    if (how & 8)
        options.max_wait_ms = 1 + how * 10;
    asks_for_grant(handle, promise);
    if (called(promise, evlock_acquire(handle->lock, &options, on_end, promise)) != EVLOCK_OK)
        memcpy(handle->affirmed, before.affirmed, sizeof(before.affirmed));
    else
        begun(handle);
}

static void adopt(struct handle *handle) {
    struct promise *promise = promise_of(handle);
    struct handle before = *handle;
    size_t len = take_byte(&input) % 40;
    const uint8_t *token = take_bytes(&input, &len);

    promise->adopts = true;
    asks_for_grant(handle, promise);
    if (called(promise, evlock_adopt(handle->lock, token, len, on_end, promise)) != EVLOCK_OK)
        memcpy(handle->affirmed, before.affirmed, sizeof(before.affirmed));
    else
        begun(handle);
}

static void release(struct handle *handle) {
    struct promise *promise = promise_of(handle);

    if (called(promise, evlock_release(handle->lock, on_end, promise)) == EVLOCK_OK) {
        handle->granted = handle->losable = false;
        check(!evlock_is_held(handle->lock));
    }
}

static void extend(struct handle *handle) {
    struct promise *promise = promise_of(handle);
    uint8_t how = take_byte(&input);

    if (how == 0)
        called(promise, evlock_extend(handle->lock, 0, EVLOCK_EXTEND_RESET, on_end, promise));
    else
        called(promise,
               evlock_extend(handle->lock, how % 8 == 7 ? take_number(&input) : how * 20, how % 2, on_end, promise));
}

static void list(const evlock_cursor *from) {
    struct promise *promise = promise_of(NULL);

    called(promise, evlock_client_list(client, "a", 1, from, on_page, promise));
}

static void query(struct handle *handle) {
    struct promise *promise = promise_of(handle);
    uint8_t which = take_byte(&input);

    promise->what = which % 128;
    if (which >= 192 && client)
        list(NULL);
    else if (which < 128)
        called(promise, evlock_query(handle->lock, promise->what, on_answer, promise));
    else
        called(promise, evlock_break(handle->lock, on_end, promise));
}

static void export(struct handle *handle) {
    char token[128];
    size_t len;
    bool held = evlock_is_held(handle->lock);

    if (called(NULL, evlock_export(handle->lock, token, sizeof(token), &len)) == EVLOCK_OK) {
        check(held && len <= sizeof(token) && !evlock_is_held(handle->lock));
        handle->granted = handle->losable = false;
    }
}

static bool is_own(const void *arg) {
    return (const char *)arg >= owns && (const char *)arg < owns + OWNS;
}

static void cancel(struct handle *handle) {
    called(NULL, evlock_cancel(handle->lock));
}

/* Ends at once, goes on, could not begin, or frees its handle, where evlock_run() has made that. */
static int body(evlock *lock, void *arg) {
    bool own = is_own(arg);
    uint8_t how = take_byte(&input);

    check(!run.calling && evlock_is_held(lock));
    if (!own)
        ((struct handle *)arg)->granted = ((struct handle *)arg)->losable = true;
    if (own && how % 8 == 0)
        evlock_free(lock);
    else if (!run.body && how & 8) {
        run.body = lock;
        run.body_of = arg;
        return EVLOCK_OK;
    } else if (!(how & 16))
        check(evlock_release(lock, NULL, NULL) == EVLOCK_OK);
    return how & 16 ? value_of_body : EVLOCK_OK;
}

static void on_run(int status, bool ran, void *arg) {
    check(!run.calling);
    if (status != value_of_body)
        check_status(status);
    check((status != EVLOCK_OK && status != value_of_body) || ran);
    if (run.body_of == arg)
        run.body = run.body_of = NULL;
    run.runs_told++;
}

static void begin_run(struct handle *handle) {
    if (run.body) {
        called(NULL, evlock_release(run.body, NULL, NULL));
        run.body = run.body_of = NULL;
        return;
    }
    if (take_byte(&input) % 2)
        run.runs += called(NULL, evlock_with(handle->lock, body, on_run, handle)) == EVLOCK_OK;
    else if (client)
        run.runs +=
            called(NULL, evlock_run(NULL, client, "run", 3, NULL, body, on_run, &owns[run.runs % OWNS])) == EVLOCK_OK;
}

static void make(struct handle *handle) {
    static const int64_t ttls[] = {30000, 1000, 100, 60000, 10, EVLOCK_NO_EXPIRY};
    evlock_options options = {.size = sizeof(evlock_options)};
    uint8_t how = take_byte(&input);
    int status;

    if (run.body == handle->lock)
        run.body = run.body_of = NULL;
    evlock_free(handle->lock);
    *handle = (struct handle){.fence = handle->fence, .longest_ms = how & 24 || how % 6 == 5 ? 0 : ttls[how % 6]};
    if (!client || run.closing)
        return;
    options.ttl_ms = ttls[how % 6];
    options.auto_renewal = how & 8;
    options.min_replicas = how & 16 ? 1 : 0;
    options.max_hold_ms = how & 32 ? 2000 : 0;
    options.wait = how & 64 ? EVLOCK_WAIT_QUEUE : EVLOCK_WAIT_POLL;
    options.holder = how & 128 ? "somebody" : NULL;
    options.on_lost = on_lost;
    options.on_at_risk = on_risk;
    options.arg = handle;
    /* A name of its own for each, so that their fences are told apart. */
    status = evlock_new(&handle->lock, client, name_of(handle), 1, &options);
    check_status(status);
    check((status == EVLOCK_OK) == (handle->lock != NULL));
}

static void call_something(void) {
    static void (*const calls[])(struct handle *) = {acquire, release, extend,    query, export,
                                                     cancel,  adopt,   begin_run, make};
    uint8_t which = take_byte(&input);
    struct handle *handle = &handles[which / 16 % HANDLES];
    void (*call)(struct handle *) = calls[which % 16 % (sizeof(calls) / sizeof(calls[0]))];

    if (run.calls + 1 >= CALLS || (!handle->lock && call != make))
        return;
    run.calling = true;
    call(handle);
    run.calling = false;
}

/* --- Credentials -------------------------------------------------------------------------------------------------- */

/* The right ones, others, or a question for them. */
static void log_in(evlock_client *to, size_t node, uint8_t how) {
    static const char *const passwords[] = {password, "other", NULL};

    if (how % 4 < 3)
        check_status(evlock_client_login(to, node, NULL, passwords[how % 4]));
}

static void on_login(evlock_client *asking, size_t node, void *arg) {
    (void)arg;
    check(!run.calling && node < run.nodes);
    log_in(asking, node, take_byte(&input));
}

static void log_in_unasked(void) {
    run.calling = true;
    log_in(client, EVLOCK_ALL_NODES, take_byte(&input));
    run.calling = false;
}

/* --- The program -------------------------------------------------------------------------------------------------- */

static void on_said(unsigned node, const char *key) {
    for (int i = 0; i < HANDLES; i++)
        if (!key || strcmp(key, name_of(&handles[i])) == 0)
            handles[i].affirmed[node] = true;
}

static void turn(void) {
    server.time = INT64_C(1700000000000000) + loop.common.now;
    loop_turn(&loop);
    server_turn(&server);
}

static void answer_all(void) {
    for (int i = 0; i < 4; i++) {
        for (struct peer *peer = server.peers; peer < server.peers + SERVER_PEERS; peer++)
            while (peer->socket && peer->asked > 0)
                server_answer(&server, peer, ANSWER_YES, 0);
        turn();
    }
}

static void speak(uint8_t how) {
    struct peer *peer = server_peer(&server, how / 16);
    const uint8_t *bytes;
    size_t len;

    if (!peer)
        return;
    if (how % 16 < 4) {
        server_answer(&server, peer, how % 4, take_byte(&input));
    } else if (how % 16 == 4) {
        server_hang_up(peer);
    } else if (how % 16 == 5) {
        sockets_refuse_next(peer->node);
        server_hang_up(peer);
    } else if (how % 16 < 8) {
        server.piece = take_byte(&input) % 8;
    } else if (how % 16 == 14) {
        server_flood(&server, peer, (size_t)1 << take_byte(&input) % 18);
    } else if (how % 16 == 15) {
        len = take_byte(&input) % 32;
        bytes = take_bytes(&input, &len);
        server_grant(&server, bytes, len);
    } else {
        len = take_byte(&input);
        bytes = take_bytes(&input, &len);
        server_say(&server, peer, bytes, len);
    }
}

static void check_stats(void) {
    evlock_stats stats;

    check(evlock_client_stats(client, &stats, sizeof(stats)) == EVLOCK_OK);
    check(stats.handed <= stats.waited && stats.waited <= stats.acquired);
}

static void check_handles(void) {
    if (client)
        check_stats();
    for (int i = 0; i < HANDLES; i++) {
        const struct handle *handle = &handles[i];
        if (!handle->lock)
            continue;
        check(!evlock_is_held(handle->lock) || handle->granted);
        check(evlock_is_held(handle->lock) || evlock_remaining_ms(handle->lock) == 0);
        check(evlock_waited_ms(handle->lock) >= 0);
    }
}

static void step(void) {
    static const int64_t times[] = {1, 10, 50, 100, 333, 1000, 5000, 30000};
    uint8_t what = take_byte(&input);

    if (what < 64)
        call_something();
    else if (what < 160)
        speak(take_byte(&input));
    else if (what < 192)
        turn();
    else if (what < 224)
        answer_all();
    else if (what < 253)
        loop_pass(&loop, times[what % 8] * 1000);
    else if (what == 253 && client)
        log_in_unasked();
    else if (client && !run.closing)
        run.closing = evlock_client_close(client, on_closed, NULL) == EVLOCK_OK;
    check_handles();
}

static void begin(void) {
    evlock_client_options options = {.size = sizeof(evlock_client_options)};
    const char *urls[SERVER_NODES];
    uint8_t how = take_byte(&input);
    evlock_loop adapter = loop_adapter(&loop);

    counted_begin(password);
    memset(&run, 0, sizeof(run));
    memset(handles, 0, sizeof(handles));
    run.secret = !memmem(input.at, (size_t)(input.end - input.at), password, strlen(password));
    loop_begin(&loop);
    server.said = on_said;
    server.between = turn;
    server_begin(&server);
    for (int i = 0; i < SERVER_NODES; i++)
        urls[i] = server.urls[i];
    run.nodes = how & 1 ? SERVER_NODES : 1;
    options.on_login = how & 64 ? on_login : NULL;
    options.password = how & 2 && !options.on_login ? password : NULL;
    options.user = options.password && how & 32 ? "worker" : NULL;
    options.max_inflight = how & 4 ? 1 : 0;
    options.durable = how & 8;
    options.log_level = how & 16 ? EVLOCK_LOG_DEBUG : EVLOCK_LOG_INFO;
    options.on_log = on_log;
    options.on_connection = on_connection;
    check(evlock_client_new(&client, &adapter, urls_joined(urls, run.nodes).text, &options) == EVLOCK_OK);
    for (int i = 0; i < HANDLES; i++)
        make(&handles[i]);
}

static void end(void) {
    if (run.body)
        evlock_release(run.body, NULL, NULL);
    run.body = run.body_of = NULL;
    input.at = input.end; /* callbacks call nothing more */
    evlock_client_free(client);
    for (int i = 0; i < HANDLES; i++) {
        evlock_free(handles[i].lock);
        handles[i].lock = NULL;
    }
    for (int i = 0; i < 3; i++)
        turn();
    check(run.told == run.calls);
    check(run.runs_told == run.runs);
    server_end(&server);
    loop_end(&loop);
    check(counted_live() == 0);
    check(!run.secret || !counted_leaked_secret());
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input = (struct input){data, data + size};
    begin();
    while (input.at < input.end)
        step();
    end();
    return 0;
}
