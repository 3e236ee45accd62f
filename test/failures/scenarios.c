/* The scenarios; see scenarios.h. */
#include "scenarios.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* Says something to the first server, or the only one. */
#define server_say(...) server_do(&stage_servers[0], __VA_ARGS__)

/* A lock on the client of the stage, acquired. */
static evlock *acquired(struct stage *s, const char *name, const evlock_options *options) {
    evlock *lock = stage_lock(s, name, options);
    stage_await(stage_acquire(s, lock, NULL), EVLOCK_OK);
    return lock;
}

static evlock_acquire_options a_try(void) {
    evlock_acquire_options options = {.size = sizeof(evlock_acquire_options)};
    options.max_attempts = EVLOCK_TRY;
    return options;
}

static struct told *extend(struct stage *s, evlock *lock, int64_t ms, enum evlock_extend_mode mode) {
    struct told *told = stage_told(s);
    return stage_judge(told, lock ? evlock_extend(lock, ms, mode, told_end, told) : STAGE_SKIPPED);
}

static struct told *query(struct stage *s, evlock *lock, unsigned what) {
    struct told *told = stage_told(s);
    return stage_judge(told, lock ? evlock_query(lock, what, told_answer, told) : STAGE_SKIPPED);
}

static struct told *break_by_force(struct stage *s, evlock *lock) {
    struct told *told = stage_told(s);
    return stage_judge(told, lock ? evlock_break(lock, told_end, told) : STAGE_SKIPPED);
}

static struct told *adopt(struct stage *s, evlock *lock, const void *token, size_t len) {
    struct told *told = stage_told(s);
    return stage_judge(told, lock ? evlock_adopt(lock, token, len, told_end, told) : STAGE_SKIPPED);
}

/* --- Connecting --------------------------------------------------------------------------------------------------- */

static bool connected(const struct stage *s) {
    return !s->client || evlock_client_connection(s->client) == EVLOCK_CONNECTED;
}

static void connect_by(struct stage *s, const char *url, const evlock_client_options *options) {
    stage_client(s, url, options);
    stage_until(s, connected(s));
    stage_lock(s, "a", NULL);
}

static void connect_unix(struct stage *s) {
    connect_by(s, NULL, NULL);
}

static void connect_tcp(struct stage *s) {
    connect_by(s, stage_servers[0].tcp_url, NULL);
}

static void connect_host_name(struct stage *s) {
    char url[64];
    snprintf(url, sizeof(url), "%s://localhost:%d", server_scheme(), stage_servers[0].port);
    connect_by(s, url, NULL);
}

static void connect_as_user(struct stage *s) {
    char url[96];
    snprintf(url, sizeof(url), "%s://user:password@127.0.0.1:%d/1", server_scheme(), stage_servers[0].port);
    stage_select(s, 1);
    connect_by(s, url, NULL);
}

static void connect_by_options(struct stage *s) {
    evlock_client_options options = stage_client_options(s);
    options.user = "user";
    options.password = "password";
    connect_by(s, NULL, &options);
}

/* Who is asked answers inside; where that fails, the attempt ends and it is asked again. */
static void give_credentials(evlock_client *client, size_t node, void *arg) {
    (void)arg;
    (void)evlock_client_login(client, node, "user", "password");
}

static evlock_client_options asking(struct stage *s) {
    evlock_client_options options = stage_client_options(s);
    options.on_login = give_credentials;
    return options;
}

static void connect_when_asked(struct stage *s) {
    evlock_client_options options = asking(s);
    connect_by(s, NULL, &options);
}

static void connect_by_file(struct stage *s) {
    evlock_client_options options = stage_client_options(s);
    char path[128];
    snprintf(path, sizeof(path), "%s/password", stage_servers[0].folder);
    FILE *file = fopen(path, "we");
    if (!file || fputs("password\n", file) < 0 || fclose(file) != 0)
        fail_msg("no file for a password");
    options.user = "user";
    options.password_file = path;
    connect_by(s, NULL, &options);
}

static void log_in_anew(struct stage *s, const char *user, const char *password) {
    struct told *told = stage_told(s);
    told = stage_judge(told, s->client ? evlock_client_login(s->client, 0, user, password) : STAGE_SKIPPED);
    if (told)
        told->due = 0; /* it has no callback */
}

/* A lock that is held through it all, with a connection that waits for replicas beside. */
static void log_in_on_living_connections(struct stage *s) {
    evlock_client_options options = asking(s);
    stage_client(s, NULL, &options);
    evlock *lock = acquired(s, "a", NULL);
    evlock_options terms = stage_options(s);
    terms.min_replicas = 1;
    stage_lock(s, "b", &terms);
    log_in_anew(s, "user", "password");
    log_in_anew(s, NULL, NULL);
    stage_await(query(s, lock, EVLOCK_QUERY_OWNED), EVLOCK_OK);
    stage_await(stage_release(s, lock), EVLOCK_OK);
}

/* Nobody listens there; the client that is made for the end is the server's. */
static void connect_in_vain(struct stage *s) {
    evlock_acquire_options once = a_try();
    char url[64];
    snprintf(url, sizeof(url), "%s://127.0.0.1:1", server_scheme());
    stage_client(s, url, NULL);
    evlock *lock = stage_lock(s, "a", NULL);
    stage_await(stage_acquire(s, lock, &once), EVLOCK_EUNREACHABLE);
    stage_free_client(s);
    snprintf(s->url, sizeof(s->url), "%s", stage_servers[0].url);
}

static void lose_the_connection(struct stage *s) {
    stage_client(s, NULL, NULL);
    evlock *lock = acquired(s, "a", NULL);
    server_say("CLIENT KILL TYPE normal SKIPME yes");
    stage_await(query(s, lock, EVLOCK_QUERY_LOCKED), EVLOCK_OK);
    stage_await(extend(s, lock, 1000, EVLOCK_EXTEND_ADD), EVLOCK_OK);
    server_say("CLIENT KILL TYPE normal SKIPME yes");
    stage_await(stage_release(s, lock), EVLOCK_OK);
}

static void lose_the_scripts(struct stage *s) {
    stage_client(s, NULL, NULL);
    evlock *lock = acquired(s, "a", NULL);
    server_say("SCRIPT FLUSH");
    stage_await(extend(s, lock, 1000, EVLOCK_EXTEND_ADD), EVLOCK_OK);
    server_say("SCRIPT FLUSH");
    stage_await(stage_release(s, lock), EVLOCK_OK);
}

/* By one who may not send their digests. */
static void send_scripts_whole(struct stage *s) {
    evlock_client_options options = stage_client_options(s);
    options.user = "speller";
    options.password = "password";
    stage_client(s, NULL, &options);
    evlock *lock = acquired(s, "a", NULL);
    stage_await(extend(s, lock, 1000, EVLOCK_EXTEND_ADD), EVLOCK_OK);
    stage_await(stage_release(s, lock), EVLOCK_OK);
}

/* --- Acquiring ---------------------------------------------------------------------------------------------------- */

static void acquire_and_release(struct stage *s) {
    stage_client(s, NULL, NULL);
    evlock *lock = acquired(s, "a", NULL);
    stage_await(stage_release(s, lock), EVLOCK_OK);
    stage_await(stage_acquire(s, lock, NULL), EVLOCK_OK);
}

static void acquire_with_own_token(struct stage *s) {
    evlock_acquire_options own = {.size = sizeof(evlock_acquire_options)};
    own.token = "mine";
    own.token_len = EVLOCK_CSTRING;
    stage_client(s, NULL, NULL);
    evlock *lock = stage_lock(s, "a", NULL);
    stage_await(stage_acquire(s, lock, &own), EVLOCK_OK);
    const void *token = evlock_token(lock, NULL);
    if (token && memcmp(token, "mine", 4) != 0)
        stage_wrong(s, "a token other than the caller's");
    if (lock)
        stage_free_lock(s, lock);
    stage_await(stage_acquire(s, stage_lock(s, "a", NULL), &own), EVLOCK_OK);
}

static void acquire_what_another_has(struct stage *s) {
    evlock_acquire_options once = a_try();
    server_say("SET a stranger PX 600000");
    stage_client(s, NULL, NULL);
    evlock *lock = stage_lock(s, "a", NULL);
    stage_await(stage_acquire(s, lock, &once), EVLOCK_EHELD);
    struct told *waiting = stage_acquire(s, lock, NULL);
    for (int turns = 0; turns < 4; turns++)
        stage_turn(s);
    server_say("DEL a");
    stage_await(waiting, EVLOCK_OK);
}

static void wait_in_vain(struct stage *s) {
    evlock_acquire_options soon = {.size = sizeof(evlock_acquire_options)};
    soon.max_wait_ms = 4;
    server_say("SET a stranger PX 600000");
    stage_client(s, NULL, NULL);
    stage_until(s, connected(s));
    evlock *lock = stage_lock(s, "a", NULL);
    stage_await(stage_acquire(s, lock, &soon), EVLOCK_ETIMEDOUT);
    struct told *cancelled = stage_acquire(s, lock, NULL);
    stage_turn(s);
    faults_arm();
    if (cancelled && cancelled->count == 0)
        (void)evlock_cancel(lock);
    faults_disarm();
    stage_await(cancelled, EVLOCK_ECANCELLED);
}

/* More handles and pending calls than a client has room for at first, with options that are not shared. */
static void acquire_many(struct stage *s) {
    evlock *locks[15];
    struct told *calls[15];
    evlock_options options = stage_options(s);
    char name[8];
    options.prefix = "many:";
    options.label = "one of many";
    stage_client(s, NULL, NULL);
    for (int i = 0; i < 15; i++) {
        snprintf(name, sizeof(name), "%d", i % 3);
        options.retry_jitter = i;
        locks[i] = stage_lock(s, name, &options);
        calls[i] = stage_acquire(s, locks[i], NULL);
    }
    for (int i = 0; i < 3; i++)
        stage_until(s, !calls[i] || calls[i]->count);
}

static void draw_fences(struct stage *s) {
    evlock_acquire_options fenced = {.size = sizeof(evlock_acquire_options)};
    fenced.fence = EVLOCK_ON;
    stage_client(s, NULL, NULL);
    evlock *lock = stage_lock(s, "a", NULL);
    stage_await(stage_acquire(s, lock, &fenced), EVLOCK_OK);
    stage_await(stage_release(s, lock), EVLOCK_OK);
    stage_await(stage_acquire(s, lock, &fenced), EVLOCK_OK);
    if (s->plain && evlock_fence(lock) == 0)
        stage_wrong(s, "no fence");
}

static void wait_for_replicas(struct stage *s) {
    evlock_options options = stage_options(s);
    options.min_replicas = 1;
    options.replica_timeout_ms = 900;
    stage_client(s, NULL, NULL);
    evlock *lock = acquired(s, "a", &options);
    stage_await(stage_release(s, lock), EVLOCK_OK);
}

static void miss_replicas(struct stage *s) {
    evlock_acquire_options once = a_try();
    evlock_options options = stage_options(s);
    options.min_replicas = 9;
    options.replica_timeout_ms = 5;
    stage_client(s, NULL, NULL);
    stage_until(s, connected(s));
    stage_await(stage_acquire(s, stage_lock(s, "a", &options), &once), EVLOCK_EREPLICAS);
}

/* --- Holding ------------------------------------------------------------------------------------------------------ */

static long long renewals(void) {
    return server_calls(&stage_servers[0], "evalsha");
}

static void renew(struct stage *s) {
    evlock_options options = stage_options(s);
    options.auto_renewal = true;
    options.renewal_interval_ms = 1;
    stage_client(s, NULL, NULL);
    evlock *lock = acquired(s, "a", &options);
    long long before = renewals();
    stage_until(s, renewals() > before + 2);
    stage_await(stage_release(s, lock), EVLOCK_OK);
}

/* While the loop stands still, all fall due. */
static void renew_together(struct stage *s) {
    evlock_options options = stage_options(s);
    options.auto_renewal = true;
    options.renewal_interval_ms = 1;
    stage_client(s, NULL, NULL);
    evlock *locks[] = {acquired(s, "a", &options), acquired(s, "b", &options)};
    long long before = renewals();
    nanosleep(&(struct timespec){0, 5 * 1000 * 1000}, NULL);
    stage_until(s, renewals() > before + 2);
    stage_await(stage_release(s, locks[0]), EVLOCK_OK);
    stage_await(stage_release(s, locks[1]), EVLOCK_OK);
}

static void extend_at_once(struct stage *s) {
    stage_client(s, NULL, NULL);
    evlock *lock = acquired(s, "a", NULL);
    struct told *longer = extend(s, lock, 1000, EVLOCK_EXTEND_ADD);
    struct told *other = extend(s, lock, 45000, EVLOCK_EXTEND_REPLACE);
    struct told *again = stage_told(s);
    again = stage_judge(again, lock ? evlock_extend(lock, 0, EVLOCK_EXTEND_RESET, told_end, again) : STAGE_SKIPPED);
    stage_await(longer, EVLOCK_OK);
    stage_await(other, EVLOCK_OK);
    stage_await(again, EVLOCK_OK);
}

static void lose_the_lease(struct stage *s) {
    evlock_options options = stage_options(s);
    options.ttl_ms = 30;
    stage_client(s, NULL, NULL);
    stage_until(s, connected(s));
    evlock *lock = stage_lock(s, "a", &options);
    struct told *acquire = stage_acquire(s, lock, NULL);
    stage_await(acquire, EVLOCK_OK);
    if (!acquire || acquire->status != EVLOCK_OK)
        return;
    int64_t limit = evlock_clock_us() + 60 * 1000 * 1000;
    while (s->lost == 0 && evlock_clock_us() < limit)
        stage_turn(s);
    if (s->lost != 1)
        stage_wrong(s, "a loss was told %d times", s->lost);
    stage_await(stage_acquire(s, lock, NULL), EVLOCK_OK);
}

/* A token that could not be adopted is still known here, so it is taken off by force. */
static void hand_over(struct stage *s) {
    char token[128];
    size_t len = 0;
    stage_client(s, NULL, NULL);
    evlock *from = acquired(s, "a", NULL);
    evlock *to = stage_lock(s, "a", NULL);
    faults_arm();
    bool exported = from && evlock_export(from, token, sizeof(token), &len) == EVLOCK_OK;
    faults_disarm();
    if (!exported)
        return;
    struct told *adoption = adopt(s, to, token, len);
    stage_await(adoption, EVLOCK_OK);
    if (!adoption || adoption->status != EVLOCK_OK)
        server_say("DEL a");
    else
        stage_await(stage_release(s, to), EVLOCK_OK);
}

/* --- Asking ------------------------------------------------------------------------------------------------------- */

static void ask(struct stage *s) {
    stage_client(s, NULL, NULL);
    evlock *lock = acquired(s, "a", NULL);
    struct told *locked = query(s, lock, EVLOCK_QUERY_LOCKED);
    struct told *owned = query(s, lock, EVLOCK_QUERY_OWNED);
    struct told *ttl = query(s, lock, EVLOCK_QUERY_TTL);
    struct told *state = query(s, lock, EVLOCK_QUERY_OWNED | EVLOCK_QUERY_TTL | EVLOCK_QUERY_HOLDER);
    stage_await(locked, EVLOCK_OK);
    stage_await(owned, EVLOCK_OK);
    stage_await(ttl, EVLOCK_OK);
    stage_await(state, EVLOCK_OK);
    stage_await(stage_release(s, lock), EVLOCK_OK);
    stage_await(query(s, lock, EVLOCK_QUERY_OWNED), EVLOCK_OK);
}

static void told_page(evlock_client *client, int status, const evlock_page *page, void *told) {
    (void)client, (void)page;
    told_end(NULL, status, told);
}

static void list(struct stage *s) {
    stage_client(s, NULL, NULL);
    evlock *lock = acquired(s, "a", NULL);
    struct told *told = stage_told(s);
    int returned = s->client ? evlock_client_list(s->client, "", 0, NULL, told_page, told) : STAGE_SKIPPED;
    stage_await(stage_judge(told, returned), EVLOCK_OK);
    stage_await(stage_release(s, lock), EVLOCK_OK);
}

static void break_what_another_has(struct stage *s) {
    server_say("SET a stranger PX 600000");
    stage_client(s, NULL, NULL);
    evlock *lock = stage_lock(s, "a", NULL);
    stage_await(break_by_force(s, lock), EVLOCK_OK);
    if (!s->plain)
        server_say("DEL a"); /* it may have been refused */
    stage_await(stage_acquire(s, lock, NULL), EVLOCK_OK);
}

/* --- Posts and holds ---------------------------------------------------------------------------------------------- */

static void posted(evlock_client *client, void *told) {
    told_end(NULL, client ? EVLOCK_OK : EVLOCK_ECANCELLED, told);
}

static void post(struct stage *s) {
    stage_client(s, NULL, NULL);
    stage_lock(s, "a", NULL);
    struct told *told = stage_told(s);
    told = stage_judge(told, s->client ? evlock_client_post(s->client, posted, told) : STAGE_SKIPPED);
    stage_await(told, EVLOCK_OK);
}

/* Its changes are many, and its end is one. */
static void end_of_hold(evlock *lock, int status, void *told) {
    if (status == EVLOCK_ECANCELLED)
        told_end(lock, status, told);
}

static void hold(struct stage *s) {
    stage_client(s, NULL, NULL);
    evlock *lock = stage_lock(s, "a", NULL);
    struct told *told = stage_told(s);
    told = stage_judge(told, lock ? evlock_hold(lock, end_of_hold, told) : STAGE_SKIPPED);
    stage_until(s, !told || evlock_is_held(lock));
    if (told && !stage_release(s, lock))
        stage_free_lock(s, lock); /* the release was refused, and the hold goes on */
    stage_await(told, EVLOCK_ECANCELLED);
}

/* --- Runs --------------------------------------------------------------------------------------------------------- */

static int end_at_once(evlock *lock, void *arg) {
    (void)arg;
    return evlock_release(lock, NULL, NULL);
}

static int cannot_begin(evlock *lock, void *arg) {
    (void)lock;
    (void)arg;
    return EVLOCK_EUNSUPPORTED;
}

static void with(struct stage *s) {
    stage_client(s, NULL, NULL);
    evlock *lock = stage_lock(s, "a", NULL);
    struct told *done = stage_told(s);
    stage_await(stage_judge(done, lock ? evlock_with(lock, end_at_once, told_run, done) : STAGE_SKIPPED), EVLOCK_OK);
    if (evlock_is_held(lock))
        stage_wrong(s, "held after its run");
}

static void run_of(struct stage *s, evlock_body body, int value) {
    evlock_options options = stage_options(s);
    stage_client(s, NULL, NULL);
    stage_lock(s, "a", NULL);
    struct told *done = stage_told(s);
    done =
        stage_judge(done, s->client ? evlock_run(NULL, s->client, "a", EVLOCK_CSTRING, &options, body, told_run, done)
                                    : STAGE_SKIPPED);
    stage_await(done, value);
}

static void run(struct stage *s) {
    run_of(s, end_at_once, EVLOCK_OK);
}

static void run_in_vain(struct stage *s) {
    run_of(s, cannot_begin, EVLOCK_EUNSUPPORTED);
}

/* --- Ending ------------------------------------------------------------------------------------------------------- */

static void free_lock_there(struct told *told, evlock *lock) {
    stage_forget(told->stage, lock);
    evlock_free(lock);
}

static void free_client_there(struct told *told, evlock *lock) {
    evlock_client *client = told->stage->client;
    (void)lock;
    told->stage->client = NULL;
    told->stage->freed = true;
    evlock_client_free(client);
}

static void free_lock_in_callback(struct stage *s) {
    stage_client(s, NULL, NULL);
    struct told *acquire = stage_acquire(s, stage_lock(s, "a", NULL), NULL);
    if (acquire)
        acquire->then = free_lock_there;
    stage_await(acquire, EVLOCK_OK);
}

static void free_client_in_callback(struct stage *s) {
    stage_client(s, NULL, NULL);
    struct told *other = stage_acquire(s, stage_lock(s, "b", NULL), NULL);
    struct told *acquire = stage_acquire(s, stage_lock(s, "a", NULL), NULL);
    if (acquire)
        acquire->then = free_client_there;
    stage_await(acquire, EVLOCK_OK);
    stage_await(other, EVLOCK_OK);
}

static void close_while_busy(struct stage *s) {
    stage_client(s, NULL, NULL);
    acquired(s, "a", NULL);
    evlock *going = acquired(s, "b", NULL);
    struct told *waiting = stage_acquire(s, stage_lock(s, "a", NULL), NULL);
    struct told *release = stage_release(s, going);
    struct told *closed = stage_close(s);
    stage_await(closed, EVLOCK_OK);
    stage_await(release, EVLOCK_OK);
    stage_await(waiting, EVLOCK_ECANCELLED);
}

static void free_while_busy(struct stage *s) {
    stage_client(s, NULL, NULL);
    acquired(s, "a", NULL);
    struct told *waiting = stage_acquire(s, stage_lock(s, "b", NULL), NULL);
    if (s->client)
        stage_free_client(s);
    stage_await(waiting, EVLOCK_ECANCELLED);
}

/* --- In the queue ------------------------------------------------------------------------------------------------- */

static evlock *queueing(struct stage *s, const char *name) {
    evlock_options options = stage_options(s);
    options.wait = EVLOCK_WAIT_QUEUE;
    options.holder = "me";
    return stage_lock(s, name, &options);
}

static evlock *holding(struct stage *s, const char *name) {
    evlock *lock = queueing(s, name);
    stage_await(stage_acquire(s, lock, NULL), EVLOCK_OK);
    return lock;
}

/* An acquire that has its place in the queue of "a", behind `ahead` others; it may have none where it was refused. */
static struct told *waiting(struct stage *s, evlock *lock, int ahead, const evlock_acquire_options *options) {
    struct told *told = stage_acquire(s, lock, options);
    if (told)
        stage_until(s, told->count || server_integer(&stage_servers[0], "ZCARD {a}:queue") > ahead);
    return told;
}

/* Nothing but a lack of memory, or of random bytes for the next attempt, ends a wait without limit. */
static void await_turn(struct stage *s, struct told *told) {
    stage_await(told, EVLOCK_OK);
    if (told && told->count && told->status != EVLOCK_OK && told->status != EVLOCK_ENOMEM &&
        told->status != EVLOCK_ESYSTEM)
        stage_wrong(s, "a wait ended with %d (%s)", told->status, evlock_strerror(told->status));
}

/* A release that is refused leaves the lock to its holder; to free the handle cannot fail. */
static void give_up(struct stage *s, evlock **lock) {
    stage_await(stage_release(s, *lock), EVLOCK_OK);
    if (evlock_is_held(*lock)) {
        stage_free_lock(s, *lock);
        *lock = NULL;
    }
}

/* In a run without refusals, who waited was granted the lock by a message. */
static void check_handed(struct stage *s, uint64_t handed) {
    evlock_stats stats;
    if (s->plain && (evlock_client_stats(s->client, &stats, sizeof(stats)) != EVLOCK_OK || stats.handed != handed))
        stage_wrong(s, "not handed on %d times", (int)handed);
}

static void wait_for_a_turn(struct stage *s) {
    evlock_acquire_options fenced = {.size = sizeof(evlock_acquire_options)};
    fenced.fence = EVLOCK_ON;
    stage_client(s, NULL, NULL);
    evlock *first = holding(s, "a"), *second = queueing(s, "a");
    struct told *turn = waiting(s, second, 0, &fenced);
    give_up(s, &first);
    await_turn(s, turn);
    turn = waiting(s, first, 0, NULL);
    give_up(s, &second);
    await_turn(s, turn);
    check_handed(s, 2);
}

static void leave_the_queue(struct stage *s) {
    evlock_acquire_options soon = {.size = sizeof(evlock_acquire_options)};
    soon.max_wait_ms = 4;
    stage_client(s, NULL, NULL);
    evlock *holder = holding(s, "a"), *second = queueing(s, "a");
    if (!evlock_is_held(holder))
        return;
    struct told *cancelled = waiting(s, second, 0, NULL);
    stage_await(stage_acquire(s, queueing(s, "a"), &soon), EVLOCK_ETIMEDOUT);
    struct told *turn = stage_acquire(s, queueing(s, "a"), NULL);
    faults_arm();
    if (cancelled && cancelled->count == 0)
        (void)evlock_cancel(second);
    faults_disarm();
    stage_await(cancelled, EVLOCK_ECANCELLED);
    give_up(s, &holder);
    await_turn(s, turn);
}

static bool listens(void) {
    redisReply *channels = server_command(&stage_servers[0], "PUBSUB CHANNELS evlock:*");
    bool found = channels->type == REDIS_REPLY_ARRAY && channels->elements > 0;
    freeReplyObject(channels);
    return found;
}

static void lose_the_ears(struct stage *s) {
    stage_client(s, NULL, NULL);
    evlock *first = holding(s, "a"), *second = queueing(s, "a");
    struct told *turn = waiting(s, second, 0, NULL);
    server_say("CLIENT KILL TYPE pubsub");
    give_up(s, &first);
    await_turn(s, turn);
    stage_until(s, listens());
    turn = waiting(s, first, 0, NULL);
    server_say("CLIENT KILL TYPE pubsub");
    server_say("CLIENT KILL TYPE normal SKIPME yes");
    give_up(s, &second);
    await_turn(s, turn);
}

/* Who listens is replaced. */
static void log_in_from_the_queue(struct stage *s) {
    evlock_client_options options = asking(s);
    stage_client(s, NULL, &options);
    evlock *holder = holding(s, "a"), *lock = queueing(s, "a");
    struct told *told = waiting(s, lock, 0, NULL);
    stage_until(s, listens());
    log_in_anew(s, "user", "password");
    give_up(s, &holder);
    await_turn(s, told);
}

/* The holder crashed, and the scripts and the queue are gone: who waits finds out when the holder's ttl has ended. */
static void look_from_the_queue(struct stage *s) {
    stage_client(s, NULL, NULL);
    stage_until(s, connected(s));
    server_say("SET a stranger PX 10");
    struct told *turn = waiting(s, queueing(s, "a"), 0, NULL);
    server_say("SCRIPT FLUSH");
    server_say("DEL {a}:queue");
    await_turn(s, turn);
}

static void ask_about_the_queue(struct stage *s) {
    server_say("SET a stranger PX 600000");
    stage_client(s, NULL, NULL);
    evlock *lock = queueing(s, "a");
    struct told *turn = waiting(s, lock, 0, NULL);
    /* Answered, so was the acquire: what follows comes behind that in each run, and is a point of the same number. */
    stage_await(query(s, lock, EVLOCK_QUERY_WAITERS), EVLOCK_OK);
    struct told *holder = query(s, lock, EVLOCK_QUERY_HOLDER);
    struct told *place = query(s, lock, EVLOCK_QUERY_PLACE);
    struct told *whole = query(s, lock, EVLOCK_QUERY_HOLDER | EVLOCK_QUERY_WAITERS | EVLOCK_QUERY_PLACE);
    stage_await(holder, EVLOCK_OK);
    stage_await(place, EVLOCK_OK);
    stage_await(whole, EVLOCK_OK);
    stage_await(break_by_force(s, lock), EVLOCK_OK);
    if (!s->plain && key_is(&stage_servers[0], "a", "stranger", 8))
        server_say("DEL a"); /* the break was refused */
    await_turn(s, turn);
}

/* More than a client has tickets for at first. */
static void crowd(struct stage *s) {
    struct told *turns[18];
    evlock *holder, *next = NULL;
    stage_client(s, NULL, NULL);
    holder = holding(s, "a");
    for (int i = 0; i < 18; i++) {
        evlock *lock = queueing(s, "a");
        turns[i] = i ? stage_acquire(s, lock, NULL) : waiting(s, lock, 0, NULL);
        next = i ? next : lock;
    }
    give_up(s, &holder);
    stage_until(s, !turns[0] || turns[0]->count);
    stage_await(stage_release(s, evlock_is_held(next) ? next : NULL), EVLOCK_OK);
    stage_await(stage_close(s), EVLOCK_OK);
}

static void close_with_waiters(struct stage *s) {
    stage_client(s, NULL, NULL);
    if (!evlock_is_held(holding(s, "a")))
        return;
    struct told *turn = waiting(s, queueing(s, "a"), 0, NULL);
    stage_await(stage_close(s), EVLOCK_OK);
    stage_await(turn, EVLOCK_ECANCELLED);
}

static void free_with_waiters(struct stage *s) {
    stage_client(s, NULL, NULL);
    if (!evlock_is_held(holding(s, "a")))
        return;
    struct told *turn = waiting(s, queueing(s, "a"), 0, NULL);
    if (s->client)
        stage_free_client(s);
    stage_await(turn, EVLOCK_ECANCELLED);
}

/* --- Passing on --------------------------------------------------------------------------------------------------- */

/* A release that is refused leaves the lock to its holder; to free the handle cannot fail. */
static void free_unless_released(evlock *lock, int status, void *told) {
    if (status != EVLOCK_ECANCELLED && evlock_is_held(lock))
        free_lock_there(told, lock);
}

static void release_there(struct told *told, evlock *lock) {
    if (told->status == EVLOCK_OK && evlock_release(lock, free_unless_released, told) != EVLOCK_OK)
        free_lock_there(told, lock);
}

static void check_passed(struct stage *s, uint64_t passed) {
    evlock_stats stats;
    if (s->plain && (evlock_client_stats(s->client, &stats, sizeof(stats)) != EVLOCK_OK || stats.passed != passed))
        stage_wrong(s, "not passed on %d times", (int)passed);
}

/* Twice, then the last takes its turn at the server. Nobody looks at a token meanwhile, which would forbid it. */
static void pass_on_by(struct stage *s, enum evlock_wait wait) {
    evlock_options options = stage_options(s);
    struct told *turns[4];
    options.wait = wait;
    options.fence = true;
    options.max_passes = 2;
    stage_client(s, NULL, NULL);
    for (int i = 0; i < 4; i++) {
        turns[i] = stage_acquire(s, stage_lock(s, "a", &options), NULL);
        if (turns[i])
            turns[i]->then = i == 1 ? free_lock_there : release_there;
    }
    for (int i = 0; i < 4; i++)
        await_turn(s, turns[i]);
    check_passed(s, 2);
    stage_await(stage_close(s), EVLOCK_OK);
}

static void pass_on(struct stage *s) {
    pass_on_by(s, EVLOCK_WAIT_POLL);
}

static void pass_on_in_the_queue(struct stage *s) {
    pass_on_by(s, EVLOCK_WAIT_QUEUE);
}

/* --- Where servers are found out ---------------------------------------------------------------------------------- */

static void hold_by_sentinels(struct stage *s) {
    stage_master(s);
    evlock *lock = acquired(s, "a", NULL);
    stage_await(query(s, lock, EVLOCK_QUERY_OWNED), EVLOCK_OK);
    server_say("CLIENT KILL TYPE normal SKIPME yes");
    stage_await(query(s, lock, EVLOCK_QUERY_OWNED), EVLOCK_OK);
    stage_await(stage_release(s, lock), EVLOCK_OK);
}

static void hold_in_a_cluster(struct stage *s) {
    stage_cluster(s);
    evlock *lock = acquired(s, "a", NULL);
    stage_await(query(s, lock, EVLOCK_QUERY_OWNED), EVLOCK_OK);
    server_do(&stage_servers[1], "CLIENT KILL TYPE normal SKIPME yes");
    stage_await(query(s, lock, EVLOCK_QUERY_OWNED), EVLOCK_OK);
    stage_await(stage_release(s, lock), EVLOCK_OK);
}

/* --- Several servers ---------------------------------------------------------------------------------------------- */

static void hold_on_a_quorum(struct stage *s) {
    evlock_options options = stage_options(s);
    evlock_acquire_options fenced = {.size = sizeof(evlock_acquire_options)};
    fenced.fence = EVLOCK_ON;
    options.ttl_ms = STAGE_TTL_MS / 2;
    options.auto_renewal = true;
    options.renewal_interval_ms = 1;
    stage_quorum(s);
    evlock *lock = stage_lock(s, "a", &options);
    stage_await(stage_acquire(s, lock, &fenced), EVLOCK_OK);
    long long before = renewals();
    stage_until(s, renewals() > before + 1);
    stage_await(extend(s, lock, 1000, EVLOCK_EXTEND_ADD), EVLOCK_OK);
    server_say("CLIENT KILL TYPE normal SKIPME yes");
    stage_await(extend(s, lock, 1000, EVLOCK_EXTEND_ADD), EVLOCK_OK);
    stage_await(stage_release(s, lock), EVLOCK_OK);
}

static void ask_a_quorum(struct stage *s) {
    stage_quorum(s);
    evlock *lock = acquired(s, "a", NULL);
    stage_await(query(s, lock, EVLOCK_QUERY_LOCKED), EVLOCK_OK);
    stage_await(query(s, lock, EVLOCK_QUERY_OWNED), EVLOCK_OK);
    stage_await(query(s, lock, EVLOCK_QUERY_TTL), EVLOCK_OK);
    stage_await(query(s, lock, EVLOCK_QUERY_LOCKED | EVLOCK_QUERY_OWNED | EVLOCK_QUERY_TTL), EVLOCK_OK);
    stage_await(stage_release(s, lock), EVLOCK_OK);
    if (lock && evlock_is_held(lock)) /* the release was refused */
        return;
    for (size_t i = 0; i < STAGE_SERVERS; i++)
        server_do(&stage_servers[i], "SET a stranger PX 600000");
    stage_await(break_by_force(s, lock), EVLOCK_OK);
}

const struct scenario scenarios[] = {
    {"connect_unix", connect_unix, false},
    {"connect_tcp", connect_tcp, false},
    {"connect_host_name", connect_host_name, false},
    {"connect_as_user", connect_as_user, false},
    {"connect_by_options", connect_by_options, false},
    {"connect_when_asked", connect_when_asked, false},
    {"connect_by_file", connect_by_file, false},
    {"log_in_on_living_connections", log_in_on_living_connections, false},
    {"connect_in_vain", connect_in_vain, false},
    {"lose_the_connection", lose_the_connection, false},
    {"lose_the_scripts", lose_the_scripts, false},
    {"send_scripts_whole", send_scripts_whole, false},
    {"acquire_and_release", acquire_and_release, false},
    {"acquire_with_own_token", acquire_with_own_token, false},
    {"acquire_what_another_has", acquire_what_another_has, false},
    {"wait_in_vain", wait_in_vain, false},
    {"acquire_many", acquire_many, false},
    {"draw_fences", draw_fences, false},
    {"wait_for_replicas", wait_for_replicas, false},
    {"miss_replicas", miss_replicas, false},
    {"renew", renew, false},
    {"renew_together", renew_together, false},
    {"extend_at_once", extend_at_once, false},
    {"lose_the_lease", lose_the_lease, false},
    {"hand_over", hand_over, false},
    {"ask", ask, false},
    {"list", list, false},
    {"break_what_another_has", break_what_another_has, false},
    {"post", post, false},
    {"hold", hold, false},
    {"with", with, false},
    {"run", run, false},
    {"run_in_vain", run_in_vain, false},
    {"free_lock_in_callback", free_lock_in_callback, false},
    {"free_client_in_callback", free_client_in_callback, false},
    {"close_while_busy", close_while_busy, false},
    {"free_while_busy", free_while_busy, false},
    {"wait_for_a_turn", wait_for_a_turn, true},
    {"leave_the_queue", leave_the_queue, true},
    {"lose_the_ears", lose_the_ears, true},
    {"log_in_from_the_queue", log_in_from_the_queue, true},
    {"look_from_the_queue", look_from_the_queue, true},
    {"ask_about_the_queue", ask_about_the_queue, true},
    {"crowd", crowd, true},
    {"close_with_waiters", close_with_waiters, true},
    {"free_with_waiters", free_with_waiters, true},
    {"pass_on", pass_on, false},
    {"pass_on_in_the_queue", pass_on_in_the_queue, true},
    {"hold_by_sentinels", hold_by_sentinels, true},
    {"hold_in_a_cluster", hold_in_a_cluster, false},
    {"hold_on_a_quorum", hold_on_a_quorum, false},
    {"ask_a_quorum", ask_a_quorum, false},
};
const size_t scenario_count = sizeof(scenarios) / sizeof(scenarios[0]);
