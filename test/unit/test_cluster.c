/*
 * A client of a cluster, on a loop whose clock is the test's. The servers are sockets in memory; their tables, logins
 * and answers are the test's, too. What becomes of masters, and of what is sent to them, where slots move meanwhile.
 */
#include <stdio.h>
#include <string.h>

#include "client.h"
#include "queue.h"
#include "world/loop.h"
#include "world/socket.h"

enum { FIRST = 1, SECOND = 2, THIRD = 3 }; /* the last digits of their ports; of the masters, their places, too */
enum { TTL_MS = 6000 * 1000 };
enum { FEW = 3 * TOLD_A_RING };

/* The tests' keys are in the slot of "{a}". */
#define AT_FIRST                                                                                                       \
    "first 127.0.0.1:7001@1 master - 0 0 1 connected 0-8191\n"                                                         \
    "second 127.0.0.1:7002@1 master - 0 0 2 connected 8192-16383\n"
#define MOVED_TO(place) "MOVED 15495 127.0.0.1:700" #place

static struct virtual_loop loop;
static evlock_client *client;
static evlock *locks[FEW];

static const evlock_loop_ops ops = {VIRTUAL_OPS, .attach = virtual_attach_nowhere};

/* Whether or not the timer is due. */
static void ring(void) {
    struct virtual_timer *timer = TAILQ_FIRST(&loop.timers);

    timer->cb(timer->arg);
}

/* No more than the first of the alarms that are due. */
static void ring_one(void) {
    struct turn *turn = evl_client_turn(client);
    struct alarm *alarm = evl_alarms_due(&turn->alarms, loop.now);

    if (alarm)
        turn->hooks->ring[alarm->kind](alarm, loop.now);
}

static struct node *node_at(unsigned place) {
    return evl_client_deployment(client)->nodes[place];
}

/* --- What servers say --------------------------------------------------------------------------------------------- */

static void say_table(unsigned place, const char *table) {
    struct reply reply = {.type = REPLY_STRING, .text = table, .len = strlen(table)};

    evl_cluster_said(node_at(place), &reply);
    evl_turn_rearm(evl_client_turn(client));
}

/* It is connected, and its login is done. */
static void serve(unsigned place) {
    struct login *login = &node_at(place)->pipe.login;
    struct connection *connection = &login->connection;

    evl_connection_want(connection);
    evlock_on_writable(connection->context);
    login->open = 0;
    login->hooks->done(login, true);
    evl_connection_ring(&connection->alarm, loop.now);
    evl_turn_rearm(connection->turn);
    assert_int_equal(connection->state, CONNECTION_READY);
}

static void answer(struct request *request, const struct reply *reply) {
    struct connection *connection = evl_node_connection(node_at(request->node));

    assert_true(request->flying);
    connection->unanswered--;
    evl_pipe_answered(connection, request, reply, loop.now);
    evl_turn_rearm(connection->turn);
}

static void say_number(struct request *request, int64_t number) {
    answer(request, &(struct reply){.type = REPLY_INTEGER, .integer = number});
}

static void send_on(struct request *request, const char *error) {
    struct reply reply = evl_reply_of(error);

    answer(request, &reply);
}

static unsigned flying_at(unsigned place) {
    struct request *request;
    unsigned count = 0;

    TAILQ_FOREACH (request, &node_at(place)->pipe.flying, link)
        count++;
    return count;
}

/* --- The client and its locks ------------------------------------------------------------------------------------- */

static int set_up(void **state) {
    static const char url[] = "redis+cluster://127.0.0.1:7000";
    evlock_client_options options = {.size = sizeof(options), .connect_timeout_ms = 600 * 1000};

    (void)state;
    virtual_loop_init(&loop, NULL, NULL);
    loop.now = 1000000000;
    for (unsigned place = 0; place <= THIRD; place++)
        sockets_listen(place, true);
    return evlock_client_new(&client, &(evlock_loop){&ops, &loop}, url, &options);
}

static int tear_down(void **state) {
    struct socket *peer;

    (void)state;
    for (int i = 0; i < FEW; i++) {
        evlock_free(locks[i]);
        locks[i] = NULL;
    }
    evlock_client_free(client);
    while (!TAILQ_EMPTY(&loop.timers))
        ring();
    for (unsigned place = 0; place <= THIRD; place++)
        while ((peer = socket_accept(place)))
            socket_end(peer);
    return sockets_count() ? -1 : 0;
}

/* The masters serve, and the second has granted so many locks. */
static void hold(int count) {
    evlock_options options = {.size = sizeof(options), .ttl_ms = TTL_MS, .auto_renewal = true};
    char name[8];

    say_table(CLUSTER_GATE, AT_FIRST);
    serve(FIRST);
    serve(SECOND);
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "{a}%d", i);
        assert_int_equal(evlock_new(&locks[i], client, name, EVLOCK_CSTRING, &options), EVLOCK_OK);
        assert_int_equal(evlock_acquire(locks[i], NULL, NULL, NULL), EVLOCK_OK);
        answer(evl_tenure_request(locks[i]->tenure, 0), &(struct reply){.type = REPLY_OK, .text = "OK", .len = 2});
    }
    ring();
}

/* Its command is on its way when this returns. */
static struct request *extend(evlock *lock) {
    assert_int_equal(evlock_extend(lock, TTL_MS, EVLOCK_EXTEND_REPLACE, NULL, NULL), EVLOCK_OK);
    return evl_tenure_request(lock->tenure, 0);
}

static void is_sent_to(const struct request *request, unsigned place) {
    assert_true(request->flying);
    assert_int_equal(request->node, place);
}

/* --- Slots that move ---------------------------------------------------------------------------------------------- */

/* Those that were told already are at a master that has the slot no more. */
CASE(slots_that_move_while_some_are_told_of_it_are_told_of_again) {
    hold(FEW);
    say_table(FIRST, "first 127.0.0.1:7001@1 master - 0 0 3 connected 0-8191 15495\n"
                     "second 127.0.0.1:7002@1 master - 0 0 2 connected 8192-15494 15496-16383\n");
    while (flying_at(FIRST) == 0)
        ring_one();
    assert_int_equal(flying_at(FIRST), TOLD_A_RING);
    send_on(evl_tenure_request(locks[0]->tenure, 0), MOVED_TO(2));
    for (int i = 0; i < TOLD_A_RING; i++)
        say_number(evl_tenure_request(locks[i]->tenure, 0), TTL_MS);
    ring();
    assert_int_equal(flying_at(FIRST) + flying_at(SECOND), 0); /* the others have not been told of any move */
    loop.now += 2000 * 1000;
    ring();
    assert_int_equal(flying_at(SECOND), TOLD_A_RING - 1);
    for (int i = 0; i < FEW; i++)
        assert_int_equal(evl_tenure_request(locks[i]->tenure, 0)->node, SECOND);
}

/* Only who is sent on several times in a row waits. */
CASE(who_was_served_meanwhile_is_sent_on_at_once) {
    hold(1);
    for (int times = 0; times < 4; times++) {
        struct request *request = extend(locks[0]);
        is_sent_to(request, times % 2 ? FIRST : SECOND);
        send_on(request, times % 2 ? MOVED_TO(2) : MOVED_TO(1));
        is_sent_to(request, times % 2 ? SECOND : FIRST);
        say_number(request, TTL_MS);
        ring();
    }
}

/* --- Masters that change ------------------------------------------------------------------------------------------ */

/* Before any table says so. */
CASE(a_replica_that_is_said_to_have_the_slot_is_connected_to) {
    struct socket *peer;

    hold(1);
    say_table(FIRST, AT_FIRST "third 127.0.0.1:7003@1 slave second 0 0 2 connected\n");
    send_on(extend(locks[0]), MOVED_TO(3));
    ring();
    peer = socket_accept(THIRD);
    assert_non_null(peer);
    socket_end(peer);
}

/* Its own, that of those who wait there, and that by which replicas are asked. */
CASE(no_connection_to_a_master_that_left_stays) {
    enum { ALL = 3 };
    struct socket *peers[ALL];
    struct request *request;

    hold(1);
    evl_queue_open(&client->locks, node_at(SECOND));
    assert_true(evl_deployment_add_side(evl_client_deployment(client), node_at(SECOND)));
    for (int i = 0; i < ALL; i++) {
        peers[i] = socket_accept(SECOND);
        assert_true(peers[i] && !socket_is_left(peers[i]));
    }
    request = extend(locks[0]);
    send_on(request, MOVED_TO(1));
    say_number(request, TTL_MS);
    ring(); /* asks for the table */
    say_table(FIRST, "first 127.0.0.1:7001@1 master - 0 0 3 connected 0-16383\n");
    loop.now += 100 * 1000 * 1000;
    ring(); /* asks again, and is done with who has left */
    ring(); /* the connections end */
    for (int i = 0; i < ALL; i++) {
        assert_true(socket_is_left(peers[i]));
        socket_end(peers[i]);
    }
}

/* --- What the client says of them --------------------------------------------------------------------------------- */

static void leave_away(unsigned place) {
    struct connection *connection = evl_node_connection(node_at(place));

    evl_connection_want(connection);
    evl_connection_break(connection, EVLOCK_EUNREACHABLE, "gone");
    ring();
    assert_int_equal(connection->state, CONNECTION_AWAY);
}

/* Whichever of the masters it is. */
CASE(while_a_master_is_away_others_that_connect_do_not_hide_it) {
    for (unsigned place = FIRST; place <= SECOND; place++) {
        say_table(CLUSTER_GATE, AT_FIRST);
        leave_away(place);
        evl_connection_want(evl_node_connection(node_at(FIRST + SECOND - place)));
        assert_int_equal(evlock_client_connection(client), EVLOCK_AWAY);
        tear_down(state);
        set_up(state);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(slots_that_move_while_some_are_told_of_it_are_told_of_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_was_served_meanwhile_is_sent_on_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_replica_that_is_said_to_have_the_slot_is_connected_to, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_connection_to_a_master_that_left_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(while_a_master_is_away_others_that_connect_do_not_hide_it, set_up, tear_down),
    };
#ifdef EVL_CHECKS
    evl_checks_all = true;
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}
