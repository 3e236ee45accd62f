/*
 * Anything may be called inside any callback: every kind of callback is brought about with every kind of deed inside
 * it, freeing the very objects in question among them. Each pair is a test of its own; what must not happen (a use
 * after free, a leak, a callback that is missing, doubled or early) is seen by the counts and by the checkers that the
 * tests run under.
 */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>

enum { CALLS = 12 };

/* One pair: how the callback comes about, and what is done in it. */
struct scene {
    void (*bring_about)(struct scene *scene);
    void (*deed)(struct scene *scene);
    char name[96];

    struct fixture *f;
    evlock_client *client; /* NULL when freed or gone */
    evlock *lock;          /* NULL when freed */
    evlock *given;         /* the handle of one call, in place of `lock` in deeds; NULL when freed */
    evlock *made;          /* a handle made inside the callback */
    struct record told;    /* of the callback in question */
    bool done;             /* the deed */
    bool running;          /* a body is at work, if the callback is one, or of one's handle */
    bool opened;           /* it has been */
    int value;             /* which the body returns */
    struct record run_done;
    struct record closed; /* of close_client() */
    bool closing;
    int returned[CALLS]; /* of the calls inside the callback, and their ends */
    struct record ended[CALLS];
};

/* --- Deeds: run inside the callback, so they assert nothing ------------------------------------------------------- */

static void nothing(struct scene *scene) {
    (void)scene;
}

static void free_handle(struct scene *scene) {
    if (scene->given) {
        evlock_free(scene->given);
        scene->given = NULL;
        scene->running = false;
        return;
    }
    if (scene->lock)
        lock_free(scene->f, scene->lock);
    scene->lock = NULL;
    scene->running = false;
}

static void free_client(struct scene *scene) {
    if (scene->client)
        client_free(scene->f, scene->client);
    scene->client = NULL;
    scene->running = false;
}

static void free_handle_then_client(struct scene *scene) {
    free_handle(scene);
    free_client(scene);
}

static void free_client_then_handle(struct scene *scene) {
    free_client(scene);
    free_handle(scene);
}

static void close_client(struct scene *scene) {
    if (evlock_client_close(scene->client, record_closed, &scene->closed) == EVLOCK_OK) {
        client_forget(scene->f, scene->client);
        scene->closing = true;
    }
    scene->client = NULL;
}

static void close_client_then_free_handle(struct scene *scene) {
    close_client(scene);
    free_handle(scene);
}

static void call_everything(struct scene *scene) {
    evlock *lock = scene->given ? scene->given : scene->lock;
    struct record *ended = scene->ended;
    int *returned = scene->returned;
    char token[128];
    size_t len;
    for (int i = 0; i < CALLS; i++)
        ended[i].in_call = true;
    returned[0] = evlock_extend(lock, 1000, EVLOCK_EXTEND_ADD, record_end, &ended[0]);
    returned[1] = evlock_extend(lock, 0, EVLOCK_EXTEND_RESET, record_end, &ended[1]);
    returned[2] = evlock_query(lock, EVLOCK_QUERY_LOCKED, record_answer, &ended[2]);
    returned[3] = evlock_query(lock, EVLOCK_QUERY_OWNED, record_answer, &ended[3]);
    returned[4] = evlock_query(lock, EVLOCK_QUERY_TTL, record_answer, &ended[4]);
    returned[5] = evlock_release(lock, record_end, &ended[5]);
    scene->running = false;
    returned[6] = evlock_acquire(lock, NULL, record_end, &ended[6]);
    evlock_cancel(lock);
    returned[7] = evlock_adopt(lock, "t", 1, record_end, &ended[7]);
    evlock_cancel(lock);
    returned[8] = evlock_break(lock, record_end, &ended[8]);
    evlock_export(lock, token, sizeof(token), &len);
    returned[9] = evlock_acquire(lock, NULL, record_end, &ended[9]);
    evlock_is_held(lock);
    evlock_remaining_ms(lock);
    evlock_token(lock, &len);
    evlock_name(lock, &len);
    evlock_client_connection(scene->client);
    returned[10] = returned[11] = EVLOCK_EINVAL;
    if (scene->client && evlock_new(&scene->made, scene->client, "another", EVLOCK_CSTRING, NULL) == EVLOCK_OK) {
        returned[10] = evlock_acquire(scene->made, NULL, record_end, &ended[10]);
        returned[11] = evlock_query(scene->made, EVLOCK_QUERY_TTL, record_answer, &ended[11]);
    }
    for (int i = 0; i < CALLS; i++)
        ended[i].in_call = false;
}

static void export_the_lease(struct scene *scene) {
    char token[128];
    size_t len;
    evlock_export(scene->given ? scene->given : scene->lock, token, sizeof(token), &len);
}

/* A handle of one call's own goes when the run has ended. */
static void end_body(struct scene *scene) {
    evlock *lock = scene->given ? scene->given : scene->lock;
    scene->running = false;
    if (lock)
        evlock_release(lock, NULL, NULL);
}

static void fail_to_begin(struct scene *scene) {
    scene->value = 7;
}

static void end_body_then_fail(struct scene *scene) {
    end_body(scene);
    fail_to_begin(scene);
}

static void free_handle_then_fail(struct scene *scene) {
    free_handle(scene);
    fail_to_begin(scene);
}

static void free_client_then_fail(struct scene *scene) {
    free_client(scene);
    fail_to_begin(scene);
}

static void close_client_then_fail(struct scene *scene) {
    close_client(scene);
    fail_to_begin(scene);
}

static void close_client_then_end_body(struct scene *scene) {
    close_client(scene);
    end_body(scene);
}

static void free_client_then_end_body(struct scene *scene) {
    free_client(scene);
    end_body(scene);
}

static void end_body_then_free_handle(struct scene *scene) {
    end_body(scene);
    free_handle(scene);
}

static void end_body_then_free_client(struct scene *scene) {
    end_body(scene);
    free_client(scene);
}

/* --- Bringing callbacks about ------------------------------------------------------------------------------------- */

static void do_the_deed(struct record *record) {
    struct scene *scene = record->then_arg;
    if (scene->done)
        return;
    scene->done = true;
    scene->deed(scene);
}

/* Makes the call that is to end in the callback. */
#define CALL(scene, call)                                                                                              \
    do {                                                                                                               \
        (scene)->told.in_call = true;                                                                                  \
        int call_returned = (call);                                                                                    \
        (scene)->told.in_call = false;                                                                                 \
        assert_status(call_returned, EVLOCK_OK);                                                                       \
    } while (0)

static void make_lock(struct scene *scene, const evlock_options *options) {
    scene->lock = lock_new(scene->f, "a", options);
}

static void hold(struct scene *scene, const evlock_options *options) {
    make_lock(scene, options);
    assert_status(await_acquire(scene->f, scene->lock, NULL), EVLOCK_OK);
}

static void stranger(struct scene *scene) {
    server_do(scene->f->server, "SET a stranger PX 600000");
}

static void acquired(struct scene *scene) {
    make_lock(scene, NULL);
    CALL(scene, evlock_acquire(scene->lock, NULL, record_end, &scene->told));
}

static void not_acquired(struct scene *scene) {
    evlock_options options = {.size = sizeof(evlock_options)};
    options.max_attempts = EVLOCK_TRY;
    make_lock(scene, &options);
    stranger(scene);
    CALL(scene, evlock_acquire(scene->lock, NULL, record_end, &scene->told));
}

static void timed_out(struct scene *scene) {
    evlock_options options = {.size = sizeof(evlock_options)};
    options.retry_delay_ms = 10;
    options.max_wait_ms = 50;
    make_lock(scene, &options);
    stranger(scene);
    CALL(scene, evlock_acquire(scene->lock, NULL, record_end, &scene->told));
}

static void cancelled(struct scene *scene) {
    make_lock(scene, NULL);
    CALL(scene, evlock_acquire(scene->lock, NULL, record_end, &scene->told));
    evlock_cancel(scene->lock);
}

static void cancelled_by_free(struct scene *scene) {
    make_lock(scene, NULL);
    CALL(scene, evlock_acquire(scene->lock, NULL, record_end, &scene->told));
    free_handle(scene);
}

/* While the server has the question and has not answered. */
static void query_cancelled_by_free(struct scene *scene) {
    hold(scene, NULL);
    server_pause(scene->f->server);
    CALL(scene, evlock_query(scene->lock, EVLOCK_QUERY_LOCKED, record_answer, &scene->told));
    free_handle(scene);
}

static void cancelled_by_client_free(struct scene *scene) {
    make_lock(scene, NULL);
    CALL(scene, evlock_acquire(scene->lock, NULL, record_end, &scene->told));
    free_client(scene);
}

static void cancelled_by_close(struct scene *scene) {
    make_lock(scene, NULL);
    stranger(scene);
    CALL(scene, evlock_acquire(scene->lock, NULL, record_end, &scene->told));
    run_for(scene->f, 20);
    close_client(scene);
}

static void released(struct scene *scene) {
    hold(scene, NULL);
    CALL(scene, evlock_release(scene->lock, record_end, &scene->told));
}

static void released_too_late(struct scene *scene) {
    hold(scene, NULL);
    stranger(scene);
    CALL(scene, evlock_release(scene->lock, record_end, &scene->told));
}

static void extended(struct scene *scene) {
    hold(scene, NULL);
    CALL(scene, evlock_extend(scene->lock, 1000, EVLOCK_EXTEND_ADD, record_end, &scene->told));
}

static void extended_with_more_to_come(struct scene *scene) {
    hold(scene, NULL);
    CALL(scene, evlock_extend(scene->lock, 1000, EVLOCK_EXTEND_ADD, record_end, &scene->told));
    evlock_extend(scene->lock, 1000, EVLOCK_EXTEND_ADD, NULL, NULL);
    evlock_extend(scene->lock, 0, EVLOCK_EXTEND_RESET, NULL, NULL);
}

static void not_extended(struct scene *scene) {
    hold(scene, NULL);
    stranger(scene);
    CALL(scene, evlock_extend(scene->lock, 1000, EVLOCK_EXTEND_ADD, record_end, &scene->told));
}

static void reset(struct scene *scene) {
    hold(scene, NULL);
    CALL(scene, evlock_extend(scene->lock, 0, EVLOCK_EXTEND_RESET, record_end, &scene->told));
}

static void locked(struct scene *scene) {
    hold(scene, NULL);
    CALL(scene, evlock_query(scene->lock, EVLOCK_QUERY_LOCKED, record_answer, &scene->told));
}

static void owned(struct scene *scene) {
    hold(scene, NULL);
    CALL(scene, evlock_query(scene->lock, EVLOCK_QUERY_OWNED, record_answer, &scene->told));
}

static void owned_without_token(struct scene *scene) {
    make_lock(scene, NULL);
    CALL(scene, evlock_query(scene->lock, EVLOCK_QUERY_OWNED, record_answer, &scene->told));
}

static void server_ttl(struct scene *scene) {
    hold(scene, NULL);
    CALL(scene, evlock_query(scene->lock, EVLOCK_QUERY_TTL, record_answer, &scene->told));
}

static void broken(struct scene *scene) {
    hold(scene, NULL);
    CALL(scene, evlock_break(scene->lock, record_end, &scene->told));
}

static void adopted(struct scene *scene) {
    make_lock(scene, NULL);
    stranger(scene);
    CALL(scene, evlock_adopt(scene->lock, "stranger", EVLOCK_CSTRING, record_end, &scene->told));
}

static void not_adopted(struct scene *scene) {
    make_lock(scene, NULL);
    CALL(scene, evlock_adopt(scene->lock, "stranger", EVLOCK_CSTRING, record_end, &scene->told));
}

static void lost_by_deadline(struct scene *scene) {
    evlock_options options = with_ttl(250);
    options.on_lost = record_end;
    options.arg = &scene->told;
    hold(scene, &options);
}

static void lost_by_deletion(struct scene *scene) {
    evlock_options options = {.size = sizeof(evlock_options)};
    options.auto_renewal = true;
    options.renewal_interval_ms = 20;
    options.on_lost = record_end;
    options.arg = &scene->told;
    hold(scene, &options);
    server_do(scene->f->server, "DEL a");
}

static void lost_by_extension(struct scene *scene) {
    evlock_options options = {.size = sizeof(evlock_options)};
    options.on_lost = record_end;
    options.arg = &scene->told;
    hold(scene, &options);
    stranger(scene);
    assert_status(evlock_extend(scene->lock, 1000, EVLOCK_EXTEND_ADD, NULL, NULL), EVLOCK_OK);
}

static void at_risk(struct scene *scene) {
    evlock_options options = with_ttl(2000);
    options.auto_renewal = true;
    options.renewal_interval_ms = 50;
    options.at_risk_percent = 99;
    options.on_at_risk = record_risk;
    options.arg = &scene->told;
    hold(scene, &options);
    server_pause(scene->f->server);
}

/* With a client of its own, in place of the fixture's, whose connection's changes are recorded. */
static void watch_connection(struct scene *scene) {
    evlock_client_options options = {.size = sizeof(evlock_client_options)};
    client_free(scene->f, scene->client);
    options.on_connection = record_connection;
    options.arg = &scene->told;
    scene->client = client_new(scene->f, NULL, &options);
    make_lock(scene, NULL);
}

static void connecting(struct scene *scene) {
    watch_connection(scene);
}

static void deed_when_connected(struct record *record) {
    if (record->value == EVLOCK_CONNECTED)
        do_the_deed(record);
}

static void connected(struct scene *scene) {
    scene->told.then = deed_when_connected;
    watch_connection(scene);
}

static void reconnecting(struct scene *scene) {
    scene->told.then = NULL;
    watch_connection(scene);
    assert_status(await_acquire(scene->f, scene->lock, NULL), EVLOCK_OK);
    scene->told.then = do_the_deed;
    server_do(scene->f->server, "CLIENT KILL TYPE normal");
}

static void deed_when_away(struct record *record) {
    if (record->value == EVLOCK_AWAY)
        do_the_deed(record);
}

static void refused(struct scene *scene) {
    scene->told.then = deed_when_away;
    server_kill9(scene->f->server);
    watch_connection(scene);
    assert_status(evlock_acquire(scene->lock, NULL, NULL, NULL), EVLOCK_OK);
}

static int told_body(evlock *lock, void *arg) {
    struct scene *scene = arg;
    scene->running = scene->opened = true;
    record_end(lock, EVLOCK_OK, &scene->told);
    if (scene->value)
        scene->running = false;
    return scene->value;
}

static int quiet_body(evlock *lock, void *arg) {
    struct scene *scene = arg;
    (void)lock;
    scene->running = scene->opened = true;
    return EVLOCK_OK;
}

static void told_run_done(int status, bool ran, void *arg) {
    struct scene *scene = arg;
    record_run(status, ran, &scene->run_done);
    scene->given = NULL;
}

static void body(struct scene *scene) {
    make_lock(scene, NULL);
    CALL(scene, evlock_with(scene->lock, told_body, told_run_done, scene));
}

static void body_of_one_call(struct scene *scene) {
    make_lock(scene, NULL);
    CALL(scene, evlock_run(&scene->given, scene->client, "b", EVLOCK_CSTRING, NULL, told_body, told_run_done, scene));
}

/* In its own handle's on_lost; the body goes on. */
static void lost_in_one_call(struct scene *scene) {
    evlock_options options = with_ttl(250);
    options.on_lost = record_end;
    options.arg = &scene->told;
    make_lock(scene, NULL);
    CALL(scene,
         evlock_run(&scene->given, scene->client, "b", EVLOCK_CSTRING, &options, quiet_body, told_run_done, scene));
}

/* The callback of a release that ends a body; `done` is still to come. */
static void body_released(struct scene *scene) {
    make_lock(scene, NULL);
    assert_status(evlock_with(scene->lock, quiet_body, told_run_done, scene), EVLOCK_OK);
    await(scene->f, scene->running);
    scene->running = false;
    CALL(scene, evlock_release(scene->lock, record_end, &scene->told));
}

static void body_of_one_call_released(struct scene *scene) {
    make_lock(scene, NULL);
    assert_status(evlock_run(&scene->given, scene->client, "b", EVLOCK_CSTRING, NULL, quiet_body, told_run_done, scene),
                  EVLOCK_OK);
    await(scene->f, scene->running);
    scene->running = false;
    CALL(scene, evlock_release(scene->given, record_end, &scene->told));
}

static void wait_released(struct scene *scene) {
    make_lock(scene, NULL);
    stranger(scene);
    scene->opened = true; /* `done` is awaited all the same */
    assert_status(evlock_run(&scene->given, scene->client, "a", EVLOCK_CSTRING, NULL, quiet_body, told_run_done, scene),
                  EVLOCK_OK);
    CALL(scene, evlock_release(scene->given, record_end, &scene->told));
}

static int empty_body(evlock *lock, void *arg) {
    (void)arg;
    return evlock_release(lock, NULL, NULL);
}

/* In `done` itself, while the handle is still there. */
static void told_done(int status, bool ran, void *arg) {
    struct scene *scene = arg;
    record_run(status, ran, &scene->told);
    scene->given = NULL;
}

static void run_done(struct scene *scene) {
    make_lock(scene, NULL);
    CALL(scene, evlock_with(scene->lock, empty_body, told_done, scene));
}

static void run_skipped(struct scene *scene) {
    evlock_options options = {.size = sizeof(evlock_options)};
    options.max_attempts = EVLOCK_TRY;
    make_lock(scene, &options);
    stranger(scene);
    CALL(scene, evlock_with(scene->lock, empty_body, told_done, scene));
}

static void run_cancelled(struct scene *scene) {
    make_lock(scene, NULL);
    CALL(scene, evlock_run(&scene->given, scene->client, "b", EVLOCK_CSTRING, NULL, empty_body, told_done, scene));
    evlock_cancel(scene->given);
}

static void one_call_done(struct scene *scene) {
    make_lock(scene, NULL);
    CALL(scene, evlock_run(&scene->given, scene->client, "b", EVLOCK_CSTRING, NULL, empty_body, told_done, scene));
}

static void closed(struct scene *scene) {
    hold(scene, NULL);
    CALL(scene, evlock_client_close(scene->client, record_closed, &scene->told));
    client_forget(scene->f, scene->client);
    scene->client = NULL;
}

/* --- The pairs ---------------------------------------------------------------------------------------------------- */

static int scene_setup(void **state) {
    struct scene *scene = *state;
    void *fixture;
    int failed = fixture_setup(&fixture);
    scene->f = fixture;
    scene->client = scene->f->client;
    scene->told.then = do_the_deed;
    scene->told.then_arg = scene;
    return failed;
}

static int scene_teardown(void **state) {
    struct scene *scene = *state;
    void *fixture = scene->f;
    return fixture_teardown(&fixture);
}

/* What the calls inside the callback returned decides how often their callbacks come: once or never. */
static void assert_ends_add_up(struct scene *scene) {
    for (int i = 0; i < CALLS; i++) {
        int expected = scene->returned[i] == EVLOCK_OK && scene->deed == call_everything;
        if (expected)
            await(scene->f, scene->ended[i].count);
        assert_int_equal(scene->ended[i].count, expected);
        assert_int_equal(scene->ended[i].early, 0);
    }
}

static void play(void **state) {
    struct scene *scene = *state;
    scene->bring_about(scene);
    await(scene->f, scene->done);
    server_resume(scene->f->server);
    if (!scene->f->server->pid)
        server_restart(scene->f->server);
    if (scene->running) {
        run_for(scene->f, 20);
        assert_int_equal(scene->run_done.count, 0);
        end_body(scene);
    }
    if (scene->opened)
        await(scene->f, scene->run_done.count);
    if (scene->closing)
        await(scene->f, scene->closed.count);
    run_for(scene->f, 20);

    free_handle(scene);
    evlock_free(scene->made);
    assert_ends_add_up(scene);
    free_client(scene);
    run_for(scene->f, 10);
    assert_ends_add_up(scene);
    assert_int_equal(scene->told.early, 0);
    assert_true(scene->closed.count <= 1);
    assert_true(scene->run_done.count <= 1);
    if (scene->bring_about != connecting && scene->bring_about != connected && scene->bring_about != reconnecting &&
        scene->bring_about != refused && scene->bring_about != at_risk)
        assert_int_equal(scene->told.count, 1);
}

struct named {
    const char *name;
    void (*function)(struct scene *scene);
};

#define NAMED(function)                                                                                                \
    { #function, function }

static const struct named causes[] = {
    NAMED(acquired),
    NAMED(not_acquired),
    NAMED(timed_out),
    NAMED(cancelled),
    NAMED(released),
    NAMED(released_too_late),
    NAMED(extended),
    NAMED(not_extended),
    NAMED(extended_with_more_to_come),
    NAMED(reset),
    NAMED(locked),
    NAMED(owned),
    NAMED(owned_without_token),
    NAMED(server_ttl),
    NAMED(broken),
    NAMED(adopted),
    NAMED(not_adopted),
    NAMED(lost_by_deadline),
    NAMED(lost_by_deletion),
    NAMED(lost_by_extension),
    NAMED(at_risk),
    NAMED(connecting),
    NAMED(connected),
    NAMED(reconnecting),
    NAMED(refused),
    NAMED(body),
    NAMED(body_of_one_call),
    NAMED(lost_in_one_call),
    NAMED(body_released),
    NAMED(body_of_one_call_released),
    NAMED(wait_released),
    NAMED(run_done),
    NAMED(run_skipped),
    NAMED(run_cancelled),
    NAMED(one_call_done),
    NAMED(closed),
    NAMED(cancelled_by_free),
    NAMED(query_cancelled_by_free),
    NAMED(cancelled_by_client_free),
    NAMED(cancelled_by_close),
};

static const struct named deeds[] = {
    NAMED(nothing),
    NAMED(free_handle),
    NAMED(free_client),
    NAMED(free_handle_then_client),
    NAMED(free_client_then_handle),
    NAMED(close_client),
    NAMED(close_client_then_free_handle),
    NAMED(call_everything),
    NAMED(export_the_lease),
};

/* Of these, with what is done with a run. */
static const struct named bodies[] = {
    NAMED(body),
    NAMED(body_of_one_call),
    NAMED(lost_in_one_call),
};
static const struct named run_deeds[] = {
    NAMED(end_body),
    NAMED(fail_to_begin),
    NAMED(end_body_then_fail),
    NAMED(free_handle_then_fail),
    NAMED(free_client_then_fail),
    NAMED(close_client_then_fail),
    NAMED(close_client_then_end_body),
    NAMED(free_client_then_end_body),
    NAMED(end_body_then_free_handle),
    NAMED(end_body_then_free_client),
};

enum {
    CAUSES = sizeof(causes) / sizeof(causes[0]),
    DEEDS = sizeof(deeds) / sizeof(deeds[0]),
    BODIES = sizeof(bodies) / sizeof(bodies[0]),
    RUN_DEEDS = sizeof(run_deeds) / sizeof(run_deeds[0]),
    PAIRS = CAUSES * DEEDS + BODIES * RUN_DEEDS,
};

static void pair(struct CMUnitTest *test, const struct named *cause, const struct named *deed) {
    static struct scene scenes[PAIRS];
    static size_t count;
    struct scene *scene = &scenes[count++];
    *scene = (struct scene){.bring_about = cause->function, .deed = deed->function};
    snprintf(scene->name, sizeof(scene->name), "%s: %s", cause->name, deed->name);
    *test = (struct CMUnitTest){scene->name, play, scene_setup, scene_teardown, scene};
}

int main(void) {
    static struct CMUnitTest tests[PAIRS];
    for (size_t i = 0; i < CAUSES * DEEDS; i++)
        pair(&tests[i], &causes[i / DEEDS], &deeds[i % DEEDS]);
    for (size_t i = 0; i < BODIES * RUN_DEEDS; i++)
        pair(&tests[CAUSES * DEEDS + i], &bodies[i / RUN_DEEDS], &run_deeds[i % RUN_DEEDS]);
    return run_suite("reentry", tests);
}
