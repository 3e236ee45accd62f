/*
 * Leases that are passed on inside a client, and what goes wrong amid that.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "users.h"
#include "waiters.h"

static evlock_options passing_for(int64_t ttl_ms) {
    evlock_options options = with_ttl(ttl_ms);

    options.max_passes = 100;
    options.retry_delay_ms = 20;
    return options;
}

/* The process stands still: no loop runs. */
static void stand_still(int64_t ms) {
    usleep((useconds_t)ms * 1000);
}

/* --- Before it was told ------------------------------------------------------------------------------------------- */

/* The wait of the next one is over by then, too. */
static void a_pass_that_is_over_before_it_was_told_ends_as_a_wait(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing_for(300);
    evlock *first = lock_new(f, "a", &options), *next = lock_new(f, "a", &options);
    struct record record = {0};

    assert_status(await_acquire(f, first, NULL), EVLOCK_OK);
    assert_status(evlock_acquire(next, EVLOCK_ACQUIRE_OPTIONS(.max_wait_ms = 350), record_end, &record), EVLOCK_OK);
    assert_status(evlock_release(first, NULL, NULL), EVLOCK_OK);
    stand_still(400);
    await(f, record.count);
    assert_ended(&record, EVLOCK_ETIMEDOUT);
    assert_status(await_acquire(f, next, NULL), EVLOCK_OK);
    assert_int_equal(stats_of(f->client).passed, 0);
}

/* --- At the end of a client --------------------------------------------------------------------------------------- */

static int granted; /* as the log says */

static void count_grants(enum evlock_log_level level, const char *line, void *arg) {
    (void)level;
    (void)arg;
    granted += strstr(line, ": held") != NULL;
}

static void a_client_that_is_freed_passes_nothing_on(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = client_options(f);
    evlock_options passing = passing_for(60000);
    evlock *locks[5];
    struct record records[5] = {{0}};
    evlock_client *client;

    options.on_log = count_grants;
    options.log_level = EVLOCK_LOG_DEBUG;
    client = client_new(f, NULL, &options);
    for (int i = 0; i < 5; i++) {
        locks[i] = lock_new_on(f, client, "a", &passing);
        assert_status(evlock_acquire(locks[i], NULL, record_end, &records[i]), EVLOCK_OK);
    }
    await(f, records[0].count);
    granted = 0;
    client_free(f, client);
    assert_int_equal(granted, 0);
    for (int i = 1; i < 5; i++) {
        await(f, records[i].count);
        assert_ended(&records[i], EVLOCK_ECANCELLED);
    }
}

/* The server granted what it asked for, and its wait was over when that was read. */
static void a_grant_goes_to_who_still_waits(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing_for(60000);
    evlock *first = lock_new(f, "a", &options), *next = lock_new(f, "a", &options);
    struct record over = {0}, waits = {0};

    assert_status(await_acquire(f, first, NULL), EVLOCK_OK);
    assert_status(await_release(f, first), EVLOCK_OK);
    assert_status(evlock_acquire(first, EVLOCK_ACQUIRE_OPTIONS(.max_wait_ms = 100), record_end, &over), EVLOCK_OK);
    assert_status(evlock_acquire(next, NULL, record_end, &waits), EVLOCK_OK);
    loop_turn(f->loop); /* it is asked for */
    assert_int_equal(over.count, 0);
    stand_still(200);
    await(f, waits.count);
    assert_ended(&waits, EVLOCK_OK);
    assert_ended(&over, EVLOCK_ETIMEDOUT);
    assert_int_equal(stats_of(f->client).passed, 0);
}

/* Neither a pause nor a server that seems away is the end of its wait. */
static void a_pass_that_is_over_before_it_was_told_is_waited_for_again(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing_for(300);
    struct record record = {0};
    evlock *first, *next;

    options.fail_when_away = true;
    first = lock_new(f, "a", &options), next = lock_new(f, "a", &options);
    assert_status(await_acquire(f, first, NULL), EVLOCK_OK);
    assert_status(evlock_acquire(next, NULL, record_end, &record), EVLOCK_OK);
    assert_status(evlock_release(first, NULL, NULL), EVLOCK_OK);
    stand_still(400);
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
}

/* --- A process that is stopped ------------------------------------------------------------------------------------ */

enum { GROUP = 20, STOPPED_TTL = 500 };

/* All of them have a place, by themselves or with others. */
static bool are_in_line(struct fixture *own, struct user *users) {
    for (int i = 0; i < GROUP;) {
        struct record record = {0};
        if (!ends(own, evlock_query(users[i].lock, EVLOCK_QUERY_PLACE, record_answer, &record), &record, EVLOCK_OK))
            return false;
        i = record.answer.place > 0 ? i + 1 : 0;
    }
    return true;
}

/* In a process of its own: says that all wait, and ends with 0 when all have held, in order. */
static int wait_together(const struct server *of, int ready) {
    struct server server = *of;
    struct fixture own;
    struct user users[GROUP];
    evlock_options options = passing_in_queue(GROUP);

    server.side = NULL;
    options.ttl_ms = STOPPED_TTL;
    if (!fixture_init(&own, &server) || !client_new(&own, NULL, NULL))
        return 2;
    make(&own, users, GROUP, &options);
    for (int i = 0; i < GROUP; i++)
        acquire(&users[i]);
    if (!are_in_line(&own, users) || write(ready, "", 1) != 1)
        return 3;
    for (int i = 0; i < GROUP; i++) {
        if (!ends(&own, EVLOCK_OK, &users[i].record, EVLOCK_OK))
            return 4;
        if (evlock_release(users[i].lock, NULL, NULL) != EVLOCK_OK)
            return 5;
    }
    fixture_free(&own);
    return 0;
}

static pid_t group_start(struct fixture *f) {
    int ready[2];
    char byte;

    assert_int_equal(pipe2(ready, O_NONBLOCK), 0);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(2 * WAIT_MS / 1000);
        _exit(wait_together(f->server, ready[1]));
    }
    close(ready[1]);
    await(f, read(ready[0], &byte, 1) == 1);
    close(ready[0]);
    return pid;
}

/* The channel of who is first in line. */
static void first_channel(struct fixture *f, char channel[128]) {
    redisReply *waiter = server_command(f->server, "ZRANGE " QUEUE " 0 0");

    assert_int_equal(waiter->elements, 1);
    assert_int_equal(sscanf(waiter->element[0]->str, "%127s", channel), 1);
    freeReplyObject(waiter);
}

/* What was said on a channel, as a connection has heard that listens to it. What is asked of the server now is answered
 * behind all of it. */
static int messages(redisContext *hears) {
    redisReply *reply;
    int count = 0;

    assert_int_equal(redisAppendCommand(hears, "PING"), REDIS_OK);
    for (;; count++) {
        assert_int_equal(redisGetReply(hears, (void **)&reply), REDIS_OK);
        bool said = reply->type == REDIS_REPLY_ARRAY && strcmp(reply->element[0]->str, "message") == 0;
        freeReplyObject(reply);
        if (!said)
            return count;
    }
}

/* The lock is granted to it once, and not to each of its handles in turn. It goes on as one when it runs again. */
static void a_stopped_group_has_one_turn(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(60000), next = queueing(60000);
    struct record record = {0};
    char channel[128];
    int status;
    evlock *holder = held(f, "a", &options);
    pid_t child = group_start(f);

    assert_int_equal(waiting(f), 1);
    first_channel(f, channel);
    redisContext *hears = redisConnectUnix(f->server->socket);
    redisReply *reply = redisCommand(hears, "SUBSCRIBE %s", channel);
    assert_non_null(reply);
    freeReplyObject(reply);
    evlock *lock = joins(f, f->client, &next, &record);
    assert_int_equal(kill(child, SIGSTOP), 0);
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_status(await_release(f, holder), EVLOCK_OK);
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
    assert_int_equal(messages(hears), 1);
    assert_int_equal(waiting(f), 0);
    assert_int_equal(kill(child, SIGCONT), 0);
    await(f, waiting(f) == 1); /* it has come again */
    assert_true(evlock_is_held(lock));
    assert_int_equal(waitpid(child, &status, WNOHANG), 0);
    assert_status(await_release(f, lock), EVLOCK_OK);
    await(f, waitpid(child, &status, WNOHANG) == child);
    assert_int_equal(status, 0);
    redisFree(hears);
    leaves_nothing(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_grant_goes_to_who_still_waits),
        TEST(a_pass_that_is_over_before_it_was_told_is_waited_for_again),
        TEST(a_pass_that_is_over_before_it_was_told_ends_as_a_wait),
        TEST(a_client_that_is_freed_passes_nothing_on),
        TEST(a_stopped_group_has_one_turn),
    };

    return run_suite("passing_faults", tests);
}
