/*
 * What is sent once more, at a server that goes on failing: a table whose rows are the calls and whose columns are the
 * ways to fail. In each cell the call ends once, with a status that tells the trouble, and after few commands. Each is
 * tried at one server and at a cluster. A test is called by its row and column.
 */
#include "../redis/harness.h"
#include "failing.h"

#include <stdio.h>

enum {
    TIMEOUT_MS = 200,
    TTL_MS = 600,
    COMMANDS_MOST = 100, /* whatever is called, and however often it is sent once more */
};

static struct failing_server server;

/* --- The calls ---------------------------------------------------------------------------------------------------- */

static int call_try(struct fixture *f, evlock *lock) {
    return await_try(f, lock);
}

static int call_acquire(struct fixture *f, evlock *lock) {
    return await_acquire(f, lock, EVLOCK_ACQUIRE_OPTIONS(.max_wait_ms = TTL_MS / 2));
}

static int call_query(struct fixture *f, evlock *lock) {
    return await_query(f, lock, EVERY_QUERY);
}

static int call_break(struct fixture *f, evlock *lock) {
    return await_break(f, lock);
}

static int call_adopt(struct fixture *f, evlock *lock) {
    return await_adopt(f, lock, "token", 5);
}

static int call_release(struct fixture *f, evlock *lock) {
    assert_status(await_try(f, lock), EVLOCK_OK);
    return await_release(f, lock);
}

static int call_extend(struct fixture *f, evlock *lock) {
    assert_status(await_try(f, lock), EVLOCK_OK);
    return await_extend(f, lock, 1000, EVLOCK_EXTEND_ADD);
}

/* Its end is that of the lease, which is told by on_lost. */
static int call_renew(struct fixture *f, evlock *lock) {
    struct record lost = {0};
    evlock_options options = with_ttl(TTL_MS);
    options.auto_renewal = true;
    options.on_lost = record_end;
    options.arg = &lost;
    lock = lock_new(f, evlock_name(lock, NULL), &options);
    assert_status(await_try(f, lock), EVLOCK_OK);
    await(f, lost.count > 0);
    lock_free(f, lock);
    assert_int_equal(lost.count, 1);
    return lost.status;
}

static void on_page(evlock_client *client, int status, const evlock_page *page, void *arg) {
    (void)client;
    (void)page;
    record_end(NULL, status, arg);
}

static int call_list(struct fixture *f, evlock *lock) {
    struct record record = {0};
    (void)lock;
    assert_status(evlock_client_list(f->client, "", 0, NULL, on_page, &record), EVLOCK_OK);
    await(f, record.count > 0);
    assert_int_equal(record.count, 1);
    return record.status;
}

/* What is held is released first, and what cannot be is waited for no longer than for its ttl. */
static int call_close(struct fixture *f, evlock *lock) {
    assert_status(await_try(f, lock), EVLOCK_OK);
    return await_close(f, f->client);
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

/* What a row says of its end, where that is not the column's. */
enum end {
    END_AS_IS,
    END_WAITS, /* for as long as it may, if that can help */
    END_HELD,  /* another has the lock, whatever it is that has it, unless that cannot be found out */
    END_TIMED, /* by then it has an answer; who is sent round has none yet */
    END_LOST,  /* the lease is lost in time */
    END_LEFT,  /* what could not be released is left */
};

static const struct row {
    const char *name;
    int (*call)(struct fixture *f, evlock *lock);
    const char *lock;
    int healthy; /* commands before the trouble */
    enum end end;
    bool alike; /* it is sent round as the row above, which takes long enough */
} rows[] = {
    {"a try", call_try, "a", 0, END_AS_IS, false},
    {"an acquire", call_acquire, "a", 0, END_WAITS, false},
    {"a look at what has the key", call_try, FAILING_HELD, 1, END_HELD, false},
    {"a query", call_query, "a", 0, END_AS_IS, false},
    {"a look before a break", call_break, "a", 0, END_AS_IS, true},
    {"a break", call_break, "a", 1, END_AS_IS, true},
    {"an adoption", call_adopt, "a", 0, END_AS_IS, true},
    {"a release", call_release, "a", 1, END_TIMED, false},
    {"an extension", call_extend, "a", 1, END_TIMED, false},
    {"a renewal", call_renew, "a", 1, END_LOST, false},
    {"a listing", call_list, "a", 0, END_AS_IS, false},
    {"a close", call_close, "a", 1, END_LEFT, false},
};

static const struct column {
    const char *name;
    int at_server;
    int at_cluster;
    bool sent_round; /* in a cluster, with pauses */
} columns[FAILINGS] = {
    [FAILING_HANGS_UP] = {"hangs up", EVLOCK_EUNREACHABLE, EVLOCK_EUNREACHABLE, false},
    [FAILING_IS_SILENT] = {"is silent", EVLOCK_EUNREACHABLE, EVLOCK_EUNREACHABLE, false},
    [FAILING_FORGETS] = {"forgets scripts", EVLOCK_EREFUSED, EVLOCK_EREFUSED, false},
    [FAILING_FLICKERS] = {"forgets scripts and hangs up", EVLOCK_EUNREACHABLE, EVLOCK_EUNREACHABLE, false},
    [FAILING_WANDERS] = {"forgets scripts and moves", EVLOCK_EUNSUPPORTED, EVLOCK_EREFUSED, true},
    [FAILING_NO_CLOCK] = {"has no clock", EVLOCK_EUNSUPPORTED, EVLOCK_EUNSUPPORTED, false},
    [FAILING_MOVES] = {"moves", EVLOCK_EUNSUPPORTED, EVLOCK_EREFUSED, true},
    [FAILING_ASKS] = {"says to ask elsewhere", EVLOCK_EUNSUPPORTED, EVLOCK_EREFUSED, true},
    [FAILING_TRY_AGAIN] = {"says to try again", EVLOCK_EREFUSED, EVLOCK_EREFUSED, true},
    [FAILING_IS_DOWN] = {"is down", EVLOCK_EREFUSED, EVLOCK_EREFUSED, false},
    [FAILING_LOADS] = {"loads", EVLOCK_EREFUSED, EVLOCK_EREFUSED, false},
    [FAILING_READS_ONLY] = {"is a replica", EVLOCK_EREFUSED, EVLOCK_EREFUSED, false},
    [FAILING_IS_BUSY] = {"is busy", EVLOCK_EREFUSED, EVLOCK_EREFUSED, false},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]), CELLS = ROWS * FAILINGS * 2 };

struct cell {
    const struct row *row;
    enum failing failing;
    bool cluster;
    char name[96];
};

static const struct cell *cell;

static int set_up(void **state) {
    cell = *state;
    return fixture_setup_bare(state);
}

static int tear_down(void **state) {
    int left = fixture_teardown(state);
    failing_stop(&server);
    return left;
}

static int expected(void) {
    const struct column *column = &columns[cell->failing];
    int status = cell->cluster ? column->at_cluster : column->at_server;
    bool final = status == EVLOCK_EUNSUPPORTED;
    switch (cell->row->end) {
    case END_AS_IS:
        return status;
    case END_WAITS:
        return final ? status : EVLOCK_ETIMEDOUT;
    case END_HELD:
        return final ? status : EVLOCK_EHELD;
    case END_TIMED:
        return cell->cluster && column->sent_round ? EVLOCK_EUNREACHABLE : status;
    case END_LOST:
        return EVLOCK_EEXPIRED;
    case END_LEFT:
        return EVLOCK_EUNREACHABLE;
    }
    return EVLOCK_OK;
}

static void it_ends(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = plain_client_options(f);
    evlock_options lock_options = with_ttl(TTL_MS);
    options.command_timeout_ms = TIMEOUT_MS;
    options.backoff_min_ms = 10;
    options.backoff_max_ms = LASTING_MS / 2;
    lock_options.retry_delay_ms = 50;
    failing_start(&server, cell->failing, cell->row->healthy);
    client_new(f, cell->cluster ? server.cluster_url : server.url, &options);
    await_connected(f, f->client);
    assert_status(cell->row->call(f, lock_new(f, cell->row->lock, &lock_options)), expected());
    assert_int_in_range(failing_count(&server), cell->row->healthy + 1, COMMANDS_MOST);
}

int main(void) {
    static struct cell cells[CELLS];
    struct CMUnitTest tests[CELLS];
    size_t count = 0;
    for (size_t i = 0; i < CELLS; i++) {
        struct cell *each = &cells[i];
        each->row = &rows[i / 2 / FAILINGS];
        each->failing = (enum failing)(i / 2 % FAILINGS);
        each->cluster = i % 2;
        snprintf(each->name, sizeof(each->name), "%s at a %s that %s", each->row->name,
                 each->cluster ? "cluster" : "server", columns[each->failing].name);
        if (!(each->row->alike && each->cluster && columns[each->failing].sent_round))
            tests[count++] = (struct CMUnitTest){each->name, it_ends, set_up, tear_down, each};
    }
    return run_suite_of("failing", tests, count);
}
