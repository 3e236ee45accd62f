/* The stage of a run; see stage.h. */
#include "stage.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../redis/tls.h"
#include "../urls.h"

enum {
    WAIT_MS = 30 * 1000, /* what must happen has happened by then, also under valgrind on a busy machine */
    VAIN_MS = 8,         /* for how long a run waits for what a refusal may have made impossible, before it heals */
};

struct server stage_servers[STAGE_SERVERS];
struct server stage_replica;
struct server stage_sentinel;
static char stage_sentinel_file[] = "/tmp/evlock-sentinel-XXXXXX";

long stage_stride(void) {
    const char *given = getenv("EVLOCK_TEST_STRIDE");
    long value = given ? strtol(given, NULL, 10) : 1;
    return value > 0 ? value : 1;
}

/* --- The servers -------------------------------------------------------------------------------------------------- */

/* It watches, and is never in a hurry to replace anything. */
static void sentinel_start(void) {
    static const char *arguments[] = {stage_sentinel_file, "--sentinel", NULL};
    close(mkstemp(stage_sentinel_file));
    server_start(&stage_sentinel, true, arguments);
    server_do(&stage_sentinel, "SENTINEL MONITOR locks 127.0.0.1 %d 1", stage_servers[0].port);
    server_do(&stage_sentinel, "SENTINEL SET locks down-after-milliseconds 3600000");
}

/* All slots are the only node's. */
static void cluster_begin(struct server *server) {
    redisReply *info;
    bool serves = false;
    server_do(server, "CLUSTER ADDSLOTSRANGE 0 16383");
    while (!serves) {
        info = server_command(server, "CLUSTER INFO");
        serves = strstr(info->str, "cluster_state:ok");
        freeReplyObject(info);
    }
}

int stage_servers_start(void **state) {
    static const char *const arguments[] = {"--repl-diskless-sync-delay", "0", NULL};
    static const char *const clustered[] = {"--cluster-enabled", "yes", NULL};
    (void)state;
    for (size_t i = 0; i < STAGE_SERVERS; i++) {
        server_start(&stage_servers[i], true, i == 1 ? clustered : arguments);
        server_do(&stage_servers[i], "ACL SETUSER user on >password ~* &* +@all");
        server_do(&stage_servers[i], "ACL SETUSER speller on >password ~* &* +@all -evalsha");
    }
    server_start(&stage_replica, true, arguments);
    server_do(&stage_replica, "REPLICAOF 127.0.0.1 %d", stage_servers[0].port);
    cluster_begin(&stage_servers[1]);
    sentinel_start();
    /* What a loop makes once for the process is not made in a run. */
    loop_free(loop_new());
    return 0;
}

int stage_servers_stop(void **state) {
    (void)state;
    server_stop(&stage_sentinel);
    unlink(stage_sentinel_file);
    server_stop(&stage_replica);
    for (size_t i = 0; i < STAGE_SERVERS; i++)
        server_stop(&stage_servers[i]);
    return 0;
}

static size_t server_count(const struct stage *stage) {
    return stage->url[0] ? 1 : STAGE_SERVERS;
}

static int64_t now_ms(void) {
    return evlock_clock_us() / 1000;
}

/* --- What is wrong ------------------------------------------------------------------------------------------------ */

void stage_wrong(struct stage *stage, const char *format, ...) {
    va_list args;
    char words[300];

    va_start(args, format);
    vsnprintf(words, sizeof(words), format, args);
    va_end(args);
    stage->wrong++;
    print_error("%s: %s\n", stage->label, words);
}

/* What a refusal of this kind may be told as, besides ENOMEM: where a connection fell victim to it, or an attempt. */
static bool may_be_told(int status) {
    switch (status) {
    case EVLOCK_ENOMEM:
    case EVLOCK_EUNREACHABLE:
    case EVLOCK_ETIMEDOUT:
    case EVLOCK_EQUORUM:
    case EVLOCK_EREPLICAS:
    case EVLOCK_EREFUSED:
    case EVLOCK_ELOST:
    case EVLOCK_ENOTOWNED:
    case EVLOCK_ECANCELLED:
        return true;
    default:
        return false;
    }
}

/* Without random bytes there is no token, and so no attempt. */
static bool lacks_random_bytes(int status) {
    return status == EVLOCK_ESYSTEM && strcmp(faults_planned_name(), "system_getrandom") == 0;
}

static int open_descriptors(void) {
    int count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* Whether the server keeps the token beyond `deadline`, or that has passed meanwhile. */
static bool keeps_beyond(struct server *server, const char *key, const void *token, size_t len, int64_t deadline) {
    int64_t left = key_is(server, key, token, len) ? key_ttl(server, key) : -1;
    int64_t now = evlock_clock_us();
    return now >= deadline || (left >= 0 && now + (left + 1) * 1000 >= deadline);
}

static void check_holders(struct stage *stage) {
    for (size_t i = 0; i < stage->lock_count; i++) {
        const evlock *lock = stage->locks[i].handle;
        int64_t deadline = evlock_clock_us() + evlock_remaining_ms(lock) * 1000;
        size_t len, backing = 0;
        const void *token = evlock_token(lock, &len);
        for (size_t j = 0; token && j < server_count(stage); j++)
            backing += keeps_beyond(&stage_servers[stage->first + j], stage->locks[i].key, token, len, deadline);
        if (token && backing <= server_count(stage) / 2)
            stage_wrong(stage, "%s is believed to be held, but is not", stage->locks[i].key);
    }
}

/* --- Calls -------------------------------------------------------------------------------------------------------- */

struct told *stage_told(struct stage *stage) {
    if (stage->call_count == STAGE_CALLS)
        fail_msg("too many calls in one scenario");
    struct told *told = &stage->calls[stage->call_count++];
    *told = (struct told){.stage = stage};
    stage->in_call = true;
    faults_arm();
    return told;
}

/* What follows from an earlier refusal: of the acquire, the extension or the release before. */
static bool follows(int returned) {
    return returned == EVLOCK_ENOTHELD || returned == EVLOCK_ELOST || returned == EVLOCK_EALREADY;
}

struct told *stage_judge(struct told *told, int returned) {
    struct stage *stage = told->stage;
    faults_disarm();
    stage->in_call = false;
    if (returned == EVLOCK_OK) {
        told->due = 1;
        return told;
    }
    if (returned == STAGE_SKIPPED)
        return NULL;
    if (stage->plain || (returned != EVLOCK_ENOMEM && !lacks_random_bytes(returned) && !follows(returned)))
        stage_wrong(stage, "a call was refused with %d (%s)", returned, evlock_strerror(returned));
    if (!evlock_last_error()[0])
        stage_wrong(stage, "a refusal without words");
    return NULL;
}

static void tell(struct told *told, evlock *lock, int status) {
    if (told->stage->in_call)
        stage_wrong(told->stage, "told before the call had returned");
    if (told->count++ > 0)
        stage_wrong(told->stage, "told twice");
    told->status = status;
    if (told->then)
        told->then(told, lock);
}

void told_end(evlock *lock, int status, void *told) {
    tell(told, lock, status);
}

void told_answer(evlock *lock, int status, const evlock_answer *answer, void *told) {
    if ((status == EVLOCK_OK) != (answer != NULL))
        stage_wrong(((struct told *)told)->stage, "an answer that does not go with its status");
    tell(told, lock, status);
}

void told_run(int status, bool ran, void *told) {
    (void)ran;
    tell(told, NULL, status);
}

void told_closed(int status, void *told) {
    tell(told, NULL, status);
}

struct told *stage_acquire(struct stage *stage, evlock *lock, const evlock_acquire_options *options) {
    struct told *told = stage_told(stage);
    return stage_judge(told, lock ? evlock_acquire(lock, options, told_end, told) : STAGE_SKIPPED);
}

struct told *stage_release(struct stage *stage, evlock *lock) {
    struct told *told = stage_told(stage);
    return stage_judge(told, lock ? evlock_release(lock, told_end, told) : STAGE_SKIPPED);
}

struct told *stage_close(struct stage *stage) {
    struct told *told = stage_told(stage);
    evlock_client *client = stage->client;
    stage->client = NULL;
    return stage_judge(told, client ? evlock_client_close(client, told_closed, told) : STAGE_SKIPPED);
}

/* --- The loop ----------------------------------------------------------------------------------------------------- */

void stage_turn(struct stage *stage) {
    faults_arm();
    loop_turn(stage->loop);
    faults_disarm();
}

int64_t stage_patience(const struct stage *stage) {
    return evlock_clock_us() + (int64_t)(stage->plain ? WAIT_MS : VAIN_MS) * 1000;
}

void stage_await(struct told *told, int expected) {
    if (!told)
        return;
    struct stage *stage = told->stage;
    int64_t vain = now_ms() + VAIN_MS, limit = now_ms() + WAIT_MS;
    while (told->count < told->due && now_ms() < limit) {
        if (faults_fired() && now_ms() > vain)
            faults_heal();
        stage_turn(stage);
    }
    if (told->count < told->due)
        stage_wrong(stage, "a callback is missing");
    else if (told->due && told->status != expected &&
             (stage->plain || !(may_be_told(told->status) || lacks_random_bytes(told->status))))
        stage_wrong(stage, "told %d (%s), not %d (%s)", told->status, evlock_strerror(told->status), expected,
                    evlock_strerror(expected));
    check_holders(stage);
}

/* --- Making and unmaking ------------------------------------------------------------------------------------------ */

evlock_client_options stage_client_options(struct stage *stage) {
    evlock_client_options options = {.size = sizeof(evlock_client_options)};
    options.backoff_min_ms = 1;
    options.backoff_max_ms = 4;
    options.durable = true;
    options.command_timeout_ms = WAIT_MS;
    tls_trust(&options);
    /* A refusal can leave a new connection deaf, which only this ends. */
    options.connect_timeout_ms = stage->plain ? WAIT_MS : stage_stride() > 1 ? 2000 : 60;
    return options;
}

static const evlock_loop *loop_of(struct stage *stage) {
    return faults_loop(loop_for_evlock(stage->loop));
}

/* Amid an error of the program's in OpenSSL's queue, which stays there whatever is refused. */
static void make_client(struct stage *stage, const char *url, const evlock_client_options *options) {
    tls_leave_error();
    faults_arm();
    int returned = evlock_client_new(&stage->client, loop_of(stage), url, options);
    faults_disarm();
    if (!tls_take_error())
        stage_wrong(stage, "the program's own error has gone from OpenSSL's queue");
    if (returned == EVLOCK_OK)
        return;
    stage->client = NULL;
    if (stage->plain || (returned != EVLOCK_ENOMEM && returned != EVLOCK_ESYSTEM) || !evlock_last_error()[0])
        stage_wrong(stage, "no client: %d (%s)", returned, evlock_strerror(returned));
}

void stage_client(struct stage *stage, const char *url, const evlock_client_options *options) {
    evlock_client_options own = stage_client_options(stage);
    snprintf(stage->url, sizeof(stage->url), "%s", url ? url : stage_servers[0].url);
    make_client(stage, stage->url, options ? options : &own);
}

void stage_cluster(struct stage *stage) {
    char url[sizeof(stage->url)];
    stage->first = 1;
    snprintf(url, sizeof(url), "%s+cluster://127.0.0.1:%d", server_scheme(), stage_servers[1].port);
    stage_client(stage, url, NULL);
}

void stage_master(struct stage *stage) {
    char url[sizeof(stage->url)];
    snprintf(url, sizeof(url), "%s+sentinel://127.0.0.1:%d,127.0.0.1:1/locks", server_scheme(), stage_sentinel.port);
    stage_client(stage, url, NULL);
}

void stage_quorum(struct stage *stage) {
    evlock_client_options options = stage_client_options(stage);
    const char *list[STAGE_SERVERS];
    for (size_t i = 0; i < STAGE_SERVERS; i++)
        list[i] = stage_servers[i].url;
    struct urls urls = urls_joined(list, STAGE_SERVERS);
    options.max_ttl_ms = STAGE_TTL_MS;
    stage->url[0] = '\0';
    make_client(stage, urls.text, &options);
}

static void on_lost(evlock *lock, int reason, void *arg) {
    struct stage *stage = arg;
    (void)reason;
    stage->lost++;
    if (evlock_is_held(lock))
        stage_wrong(stage, "told lost while it is held");
}

evlock_options stage_options(struct stage *stage) {
    evlock_options options = {.size = sizeof(evlock_options)};
    options.ttl_ms = STAGE_TTL_MS;
    options.retry_delay_ms = 2;
    options.node_timeout_ms = 500;
    options.on_lost = on_lost;
    options.arg = stage;
    return options;
}

evlock *stage_lock(struct stage *stage, const char *name, const evlock_options *options) {
    evlock_options own = stage_options(stage);
    evlock *lock = NULL;
    struct told *told = stage_told(stage);
    told = stage_judge(told, stage->client
                                 ? evlock_new(&lock, stage->client, name, EVLOCK_CSTRING, options ? options : &own)
                                 : STAGE_SKIPPED);
    if (!told)
        return NULL;
    told->due = 0; /* it has no callback */
    if (stage->lock_count == STAGE_LOCKS)
        fail_msg("too many locks in one scenario");
    stage->locks[stage->lock_count].handle = lock;
    snprintf(stage->locks[stage->lock_count++].key, sizeof(stage->locks[0].key), "%s%s",
             options && options->prefix ? options->prefix : "", name);
    return lock;
}

void stage_forget(struct stage *stage, const evlock *lock) {
    for (size_t i = 0; i < stage->lock_count; i++)
        if (stage->locks[i].handle == lock)
            stage->locks[i].handle = NULL;
}

void stage_free_lock(struct stage *stage, evlock *lock) {
    stage_forget(stage, lock);
    faults_arm();
    evlock_free(lock);
    faults_disarm();
}

void stage_free_client(struct stage *stage) {
    evlock_client *client = stage->client;
    stage->client = NULL;
    stage->freed = true;
    faults_arm();
    evlock_client_free(client);
    faults_disarm();
}

/* --- The run ------------------------------------------------------------------------------------------------------ */

void stage_begin(struct stage *stage, const char *label, bool plain) {
    memset(stage, 0, sizeof(*stage));
    stage->plain = plain;
    snprintf(stage->label, sizeof(stage->label), "%s", label);
    for (size_t i = 0; i < STAGE_SERVERS; i++)
        server_do(&stage_servers[i], "FLUSHALL");
    for (int i = 0; i < FAULT_KINDS; i++)
        stage->blocks[i] = (int)faults_live((enum fault_kind)i);
    stage->descriptors = open_descriptors();
    stage->loop = loop_new();
}

void stage_select(struct stage *stage, int db) {
    if (stage->db != db)
        server_do(&stage_servers[0], "SELECT %d", db);
    stage->db = db;
}

static bool all_told(const struct stage *stage) {
    for (size_t i = 0; i < stage->call_count; i++)
        if (stage->calls[i].count < stage->calls[i].due)
            return false;
    return true;
}

/* Everything pending ends when its handles are freed. */
static void end_calls(struct stage *stage) {
    int64_t limit = now_ms() + WAIT_MS;
    for (size_t i = 0; i < stage->lock_count; i++)
        if (stage->locks[i].handle)
            stage_free_lock(stage, stage->locks[i].handle);
    while (!all_told(stage) && now_ms() < limit)
        stage_turn(stage);
    for (size_t i = 0; i < stage->call_count; i++)
        if (stage->calls[i].count != stage->calls[i].due)
            stage_wrong(stage, "call %zu was told %d times, not %d", i, stage->calls[i].count, stage->calls[i].due);
}

static void queue_of(const char *key, char *queue, size_t size) {
    snprintf(queue, size, "{%s}:queue", key);
}

/* What is left by right: of strangers, and, with an expiry, of a client that did not wait for its releases. */
static void forget_leftovers(struct stage *stage) {
    char queue[80];
    for (size_t i = 0; i < STAGE_SERVERS; i++)
        for (size_t j = 0; j < stage->lock_count; j++) {
            const char *key = stage->locks[j].key;
            if ((stage->freed && key_ttl(&stage_servers[i], key) >= 0) || key_is(&stage_servers[i], key, "stranger", 8))
                server_do(&stage_servers[i], "DEL %s", key);
            queue_of(key, queue, sizeof(queue));
            if (stage->freed && key_ttl(&stage_servers[i], queue) >= 0)
                server_do(&stage_servers[i], "DEL %s", queue);
        }
}

static bool seen_before(const struct stage *stage, size_t place) {
    for (size_t i = 0; i < place; i++)
        if (strcmp(stage->locks[i].key, stage->locks[place].key) == 0)
            return true;
    return false;
}

/* With memory again, the client acquires each lock: nobody has it any more, or will not have it for long. */
static void recover(struct stage *stage) {
    size_t count = stage->lock_count;
    char url[sizeof(stage->url)];
    memcpy(url, stage->url, sizeof(url));
    if (!stage->client && url[0])
        stage_client(stage, url, NULL);
    else if (!stage->client)
        stage_quorum(stage);
    stage->plain = true;
    stage_until(stage, evlock_client_connection(stage->client) == EVLOCK_CONNECTED);
    for (size_t i = 0; i < count; i++)
        if (!seen_before(stage, i))
            stage_await(stage_acquire(stage, stage_lock(stage, stage->locks[i].key, NULL), NULL), EVLOCK_OK);
}

static void check_keys(struct stage *stage) {
    char queue[80];
    for (size_t i = 0; i < server_count(stage); i++)
        for (size_t j = 0; j < stage->lock_count; j++) {
            queue_of(stage->locks[j].key, queue, sizeof(queue));
            if (key_exists(&stage_servers[stage->first + i], stage->locks[j].key))
                stage_wrong(stage, "%s was left on server %zu", stage->locks[j].key, i);
            if (key_exists(&stage_servers[stage->first + i], queue))
                stage_wrong(stage, "%s was left on server %zu", queue, i);
        }
}

static void check_leftovers(struct stage *stage) {
    for (int turns = 0; turns < 3; turns++)
        stage_turn(stage);
    if (loop_registrations(stage->loop) != 0)
        stage_wrong(stage, "%d registrations were left on the loop", loop_registrations(stage->loop));
    loop_free(stage->loop);
    for (int i = 0; i < FAULT_KINDS; i++)
        if (faults_live((enum fault_kind)i) != stage->blocks[i])
            stage_wrong(stage, "%ld blocks of %s were left", faults_live((enum fault_kind)i) - stage->blocks[i],
                        fault_names[i]);
    if (open_descriptors() != stage->descriptors)
        stage_wrong(stage, "%d descriptors were left", open_descriptors() - stage->descriptors);
}

bool stage_end(struct stage *stage) {
    check_holders(stage);
    faults_heal();
    end_calls(stage);
    forget_leftovers(stage);
    recover(stage);
    stage_await(stage_close(stage), EVLOCK_OK);
    check_keys(stage);
    end_calls(stage);
    check_leftovers(stage);
    stage_select(stage, 0);
    return stage->wrong == 0;
}
