/*
 * Listings: which names are reported, in how many steps, and how a step ends when the client or the server goes. The
 * same on several nodes is in test/quorum.
 */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>

#include "waiters.h"

enum { TTL = 60000, NAMES = 4000 };

/* What a listing has found so far. Zero it. */
struct listing {
    int count, status; /* of callbacks, and the last one's status */
    void *client;
    bool more;
    evlock_cursor next;
    char *names[NAMES];
    size_t found, unfit;
};

static void listing_free(struct listing *listing) {
    for (size_t i = 0; i < listing->found; i++)
        free(listing->names[i]);
    memset(listing, 0, sizeof(*listing));
}

static void record_page(evlock_client *client, int status, const evlock_page *page, void *arg) {
    struct listing *listing = arg;
    listing->count++;
    listing->status = status;
    listing->client = client;
    listing->unfit += (page != NULL) != (status == EVLOCK_OK);
    for (size_t i = 0; page && i < page->count && listing->found < NAMES; i++) {
        listing->unfit += page->names[i].data[page->names[i].len] != '\0';
        listing->names[listing->found++] = strndup(page->names[i].data, page->names[i].len);
    }
    if (page) {
        listing->more = page->more;
        listing->next = page->next;
    }
}

static size_t times_found(const struct listing *listing, const char *name) {
    size_t sum = 0;
    for (size_t i = 0; i < listing->found; i++)
        sum += strcmp(listing->names[i], name) == 0;
    return sum;
}

/* One step, from where the last one ended. */
static int step(struct fixture *f, evlock_client *client, const char *prefix, struct listing *listing) {
    int before = listing->count;
    assert_status(evlock_client_list(client, prefix, EVLOCK_CSTRING, &listing->next, record_page, listing), EVLOCK_OK);
    assert_int_equal(listing->count, before);
    await(f, listing->count > before);
    assert_int_equal(listing->count, before + 1);
    assert_int_equal(listing->unfit, 0);
    return listing->status;
}

/* All of them; returns how many steps it took. */
static int list_all(struct fixture *f, const char *prefix, struct listing *listing) {
    do
        assert_status(step(f, f->client, prefix, listing), EVLOCK_OK);
    while (listing->more);
    return listing->count;
}

/* As the names that were found must be, in any order. */
static void assert_lists(struct fixture *f, const char *prefix, const char *const *names, size_t count) {
    struct listing listing = {0};
    list_all(f, prefix, &listing);
    for (size_t i = 0; i < count; i++)
        if (times_found(&listing, names[i]) != 1)
            fail_msg("\"%s\" was found %zu times", names[i], times_found(&listing, names[i]));
    assert_int_equal(listing.found, count);
    listing_free(&listing);
}

#define ASSERT_LISTS(f, prefix, ...)                                                                                   \
    do {                                                                                                               \
        static const char *const expected[] = {__VA_ARGS__};                                                           \
        assert_lists((f), (prefix), expected, sizeof(expected) / sizeof(expected[0]));                                 \
    } while (0)

static void hold(struct fixture *f, const char *name, evlock_options options) {
    options.fence = true;
    assert_status(await_acquire(f, lock_new(f, name, &options), NULL), EVLOCK_OK);
}

/* --- What is reported --------------------------------------------------------------------------------------------- */

static void what_is_held_beneath_a_prefix_is_listed(void **state) {
    struct fixture *f = *state;
    hold(f, "jobs:a", with_ttl(TTL));
    hold(f, "jobs:b", with_ttl(TTL));
    hold(f, "job", with_ttl(TTL));
    ASSERT_LISTS(f, "jobs:", "jobs:a", "jobs:b");
    ASSERT_LISTS(f, "jobs:a", "jobs:a");
    ASSERT_LISTS(f, "", "jobs:a", "jobs:b", "job");
    lock_free(f, f->locks[0]);
    ASSERT_LISTS(f, "jobs:", "jobs:b");
    assert_lists(f, "others", NULL, 0);
}

/* Its counter begins with the same bytes as the lock itself, where that has a tag or a brace. */
static void what_is_evlocks_own_is_not_listed(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    evlock_options options = queueing(TTL);
    hold(f, "{a}b", options);
    hold(f, "{}}", options);
    hold(f, "a}b", options);
    hold(f, "plain", options);
    assert_status(evlock_acquire(lock_new(f, "{a}b", &options), NULL, record_end, &record), EVLOCK_OK);
    await(f, ask_waiters(f, f->locks[0]) == 1);
    assert_true(key_exists(f->server, "{a}b::fence"));
    assert_true(key_exists(f->server, "{a}b::queue"));
    server_do(f->server, "SET evlock:history x");
    server_do(f->server, "SET evlock:history:{12} x");
    ASSERT_LISTS(f, "", "{a}b", "{}}", "a}b", "plain");
}

static void what_is_no_lock_is_not_listed(void **state) {
    struct fixture *f = *state;
    char longest[513];
    memset(longest, 'k', 512);
    longest[512] = '\0';
    server_do(f->server, "SET %s v", longest);
    server_do(f->server, "SET %sk v", longest);
    server_do(f->server, "RPUSH kl 1");
    server_do(f->server, "HSET kh a 1");
    server_do(f->server, "ZADD kz 1 a");
    const char *const expected[] = {longest};
    assert_lists(f, "k", expected, 1);
}

static void a_prefix_is_taken_literally(void **state) {
    struct fixture *f = *state;
    static const char *const names[] = {"a*b", "a?b", "a[b]", "a\\b", "axb", "ab", "a^b", "a-z", "a]"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        server_do(f->server, "SET %s v", names[i]);
    ASSERT_LISTS(f, "a*", "a*b");
    ASSERT_LISTS(f, "a?", "a?b");
    ASSERT_LISTS(f, "a[", "a[b]");
    ASSERT_LISTS(f, "a[b]", "a[b]");
    ASSERT_LISTS(f, "a\\", "a\\b");
    ASSERT_LISTS(f, "a^", "a^b");
    ASSERT_LISTS(f, "a-", "a-z");
    ASSERT_LISTS(f, "a]", "a]");
    assert_lists(f, "*", NULL, 0);
}

static void note_bytes(evlock_client *client, int status, const evlock_page *page, void *arg) {
    char *text = arg;
    (void)client;
    if (status == EVLOCK_OK && page->count == 1 && page->names[0].len == 8)
        memcpy(text, page->names[0].data, 9);
    else
        strcpy(text, "another");
}

static void names_are_any_bytes(void **state) {
    struct fixture *f = *state;
    char text[16] = "";
    server_do(f->server, "SET %b v", "a\0 5 b\n\xff", (size_t)8);
    server_do(f->server, "SET %b v", "a", (size_t)1);
    assert_status(evlock_client_list(f->client, "a\0 ", 3, NULL, note_bytes, text), EVLOCK_OK);
    await(f, text[0]);
    assert_memory_equal(text, "a\0 5 b\n\xff", 9);
}

static void a_long_listing_takes_many_steps(void **state) {
    enum { MANY = 3000 };
    struct fixture *f = *state;
    struct listing listing = {0};
    char name[32];
    server_do(f->server, "EVAL %s 0", "for i = 1, 3000 do redis.call('SET', 'many:' .. i, 't') end");
    assert_int_in_range(list_all(f, "many:", &listing), 3, 100);
    for (int i = 1; i <= MANY; i += 7) {
        snprintf(name, sizeof(name), "many:%d", i);
        assert_int_in_range(times_found(&listing, name), 1, 2);
    }
    assert_int_in_range(listing.found, MANY, MANY + MANY / 2);
    listing_free(&listing);
    assert_int_in_range(list_all(f, "none:", &listing), 3, 100);
    assert_int_equal(listing.found, 0);
}

/* --- How a step ends ---------------------------------------------------------------------------------------------- */

static void scripts_are_loaded_again(void **state) {
    struct fixture *f = *state;
    hold(f, "a", with_ttl(TTL));
    server_do(f->server, "SCRIPT FLUSH");
    ASSERT_LISTS(f, "a", "a");
}

static void a_step_waits_for_the_connection(void **state) {
    struct fixture *f = *state;
    struct listing listing = {0};
    server_do(f->server, "SET a v");
    assert_status(step(f, client_new(f, NULL, NULL), "a", &listing), EVLOCK_OK);
    assert_int_equal(listing.found, 1);
    listing_free(&listing);
}

static void a_step_ends_with_its_client(void **state) {
    struct fixture *f = *state;
    struct listing closed = {0}, freed = {0};
    evlock_client *other = client_new(f, NULL, NULL);
    await_connected(f, f->client);
    await_connected(f, other);
    server_pause(f->server);
    assert_status(evlock_client_list(f->client, "a", 1, NULL, record_page, &closed), EVLOCK_OK);
    assert_status(evlock_client_list(other, "a", 1, NULL, record_page, &freed), EVLOCK_OK);
    assert_status(evlock_client_close(f->client, NULL, NULL), EVLOCK_OK);
    assert_status(evlock_client_list(f->client, "a", 1, NULL, record_page, &closed), EVLOCK_ECLOSED);
    client_forget(f, f->client);
    client_free(f, other);
    await(f, closed.count && freed.count);
    server_resume(f->server);
    assert_status(closed.status, EVLOCK_ECANCELLED);
    assert_status(freed.status, EVLOCK_ECANCELLED);
    assert_null(freed.client);
    assert_int_equal(closed.count + freed.count + (int)closed.unfit + (int)freed.unfit, 2);
}

static void free_client(evlock_client *client, int status, const evlock_page *page, void *arg) {
    struct listing *listing = arg;
    record_page(client, status, page, listing);
    evlock_client_free(client);
    listing->unfit += !page || page->count != 1 || strcmp(page->names[0].data, "a") != 0;
}

static void a_client_may_be_freed_in_its_callback(void **state) {
    struct fixture *f = *state;
    struct listing listing = {0};
    server_do(f->server, "SET a v");
    assert_status(evlock_client_list(f->client, "a", 1, NULL, free_client, &listing), EVLOCK_OK);
    client_forget(f, f->client);
    await(f, listing.count);
    assert_status(listing.status, EVLOCK_OK);
    assert_int_equal(listing.unfit, 0);
    listing_free(&listing);
}

static void a_step_fails_while_the_server_is_away(void **state) {
    struct fixture *f = *state;
    struct listing listing = {0};
    await_connected(f, f->client);
    server_kill9(f->server);
    await(f, evlock_client_connection(f->client) == EVLOCK_AWAY);
    assert_status(step(f, f->client, "a", &listing), EVLOCK_EUNREACHABLE);
    server_restart(f->server);
    await_connected(f, f->client);
    server_do(f->server, "SET a v");
    assert_status(step(f, f->client, "a", &listing), EVLOCK_OK);
    assert_int_equal(listing.found, 1);
    listing_free(&listing);
}

/* The connection breaks before the answer has come, and the next one brings it. */
static void a_lost_step_is_sent_once_more(void **state) {
    struct fixture *f = *state;
    struct listing listing = {0};
    server_do(f->server, "SET a v");
    relay_start(&f->relay, f->server);
    evlock_client *client = client_new(f, f->relay.url, NULL);
    await(f, relay_pump(&f->relay) && evlock_client_connection(client) == EVLOCK_CONNECTED);
    assert_status(evlock_client_list(client, "b", 1, NULL, record_page, &listing), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && listing.count);
    listing_free(&listing);
    f->relay.pairs[0].muted = true;
    server_do(f->server, "CONFIG RESETSTAT");
    assert_status(evlock_client_list(client, "a", 1, NULL, record_page, &listing), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && server_calls(f->server, "scan") == 1);
    assert_int_equal(listing.count, 0);
    relay_cut(&f->relay, 0);
    await(f, relay_pump(&f->relay) && listing.count);
    assert_status(listing.status, EVLOCK_OK);
    assert_int_equal(listing.found, 1);
    assert_int_equal(server_calls(f->server, "scan"), 2);
    listing_free(&listing);
}

/* --- What is needed ----------------------------------------------------------------------------------------------- */

static void a_listing_needs_its_rights(void **state) {
    static const char *const without[] = {"+ping", "-scan", "-evalsha"};
    static const int expected[] = {EVLOCK_OK, EVLOCK_EPERM, EVLOCK_EPERM};
    struct fixture *f = *state;
    evlock_client_options options = client_options(f);
    options.user = "lister";
    options.password = "list";
    server_do(f->server, "SET a v");
    for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++) {
        struct listing listing = {0};
        server_do(f->server, "ACL SETUSER lister reset on >list -@all +scan +evalsha +eval +script +info +client");
        evlock_client *client = client_new(f, NULL, &options);
        await_connected(f, client);
        server_do(f->server, "ACL SETUSER lister -eval %s", without[i]);
        assert_status(step(f, client, "a", &listing), expected[i]);
        assert_int_equal(listing.found, expected[i] == EVLOCK_OK);
        listing_free(&listing);
        client_free(f, client);
    }
    server_do(f->server, "ACL DELUSER lister");
}

static void bad_input_is_refused(void **state) {
    struct fixture *f = *state;
    struct listing listing = {0};
    evlock_cursor strange = {.node = 1};
    char longest[513] = "";
    assert_status(evlock_client_list(NULL, "a", 1, NULL, record_page, &listing), EVLOCK_EINVAL);
    assert_status(evlock_client_list(f->client, NULL, 0, NULL, record_page, &listing), EVLOCK_EINVAL);
    assert_says(evlock_last_error(), "prefix");
    assert_status(evlock_client_list(f->client, "a", 1, NULL, NULL, NULL), EVLOCK_EINVAL);
    assert_says(evlock_last_error(), "callback");
    assert_status(evlock_client_list(f->client, "a", 1, &strange, record_page, &listing), EVLOCK_EINVAL);
    assert_says(evlock_last_error(), "cursor");
    assert_status(evlock_client_list(f->client, longest, 513, NULL, record_page, &listing), EVLOCK_ENAME);
    assert_status(evlock_client_list(f->client, longest, 512, NULL, record_page, &listing), EVLOCK_OK);
    await(f, listing.count);
    assert_status(listing.status, EVLOCK_OK);
    assert_int_equal(listing.count, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(what_is_held_beneath_a_prefix_is_listed),
        TEST(what_is_evlocks_own_is_not_listed),
        TEST(what_is_no_lock_is_not_listed),
        TEST(a_prefix_is_taken_literally),
        TEST(names_are_any_bytes),
        TEST(a_long_listing_takes_many_steps),
        TEST(scripts_are_loaded_again),
        TEST(a_step_waits_for_the_connection),
        TEST(a_step_ends_with_its_client),
        TEST(a_client_may_be_freed_in_its_callback),
        TEST(a_step_fails_while_the_server_is_away),
        TEST(a_lost_step_is_sent_once_more),
        TEST(a_listing_needs_its_rights),
        TEST(bad_input_is_refused),
    };
    return run_suite("list", tests);
}
