/* What the tests of Sentinel share; see story.h. */
#include "story.h"

struct sentinels group;

int story_setup(void **state) {
    static struct fixture fixture;
    *state = &fixture;
    return fixture_init(&fixture, &group.servers[0]) ? 0 : -1;
}

int story_teardown(void **state) {
    int result = fixture_teardown(state);
    sentinels_stop(&group);
    return result;
}

evlock_client_options story_options(struct fixture *f) {
    evlock_client_options options = client_options(f);
    options.backoff_min_ms = 10;
    options.backoff_max_ms = 200;
    return options;
}

evlock_client *story_client(struct fixture *f, const char *url) {
    evlock_client_options options = story_options(f);
    return client_new(f, url ? url : group.url, &options);
}

/* --- The group ---------------------------------------------------------------------------------------------------- */

static int primary_if_other(int old) {
    int primary = sentinels_primary(&group);
    return primary == old ? -1 : primary;
}

int other_primary(struct fixture *f, int old) {
    int primary = -1;
    await(f, (primary = primary_if_other(old)) >= 0);
    return primary;
}

void group_is_ready(struct fixture *f) {
    await(f, sentinels_ready(&group));
}

/* Since Redis 7.2, WAIT is for what the connection itself has written. */
void all_have_it(int primary) {
    int replicas = (int)group.servers_len - 1;
    server_do(&group.servers[primary], "PUBLISH all have");
    assert_int_equal(server_integer(&group.servers[primary], "WAIT %d %d", replicas, WAIT_MS), replicas);
}

bool has_lock(int server, const evlock *lock) {
    size_t len;
    const void *token = evlock_token(lock, &len);
    return token && key_is(&group.servers[server], evlock_name(lock, NULL), token, len);
}

/* --- A lock that is held and wanted ------------------------------------------------------------------------------- */

static evlock *holder_new(struct fixture *f, evlock_client *client, struct record *lost) {
    evlock_options options = with_ttl(STORY_TTL);
    options.auto_renewal = 1;
    options.renewal_interval_ms = 100;
    options.on_lost = record_end;
    options.arg = lost;
    return lock_new_on(f, client, "a", &options);
}

void story_begin(struct fixture *f, struct story *story, const char *url) {
    evlock_options wanting = with_ttl(STORY_TTL);
    wanting.retry_delay_ms = 20;
    *story = (struct story){0};
    story->holder = holder_new(f, story_client(f, url), &story->lost);
    assert_status(await_acquire(f, story->holder, NULL), EVLOCK_OK);
    story->contender = lock_new_on(f, story_client(f, url), "a", &wanting);
    assert_status(evlock_acquire(story->contender, NULL, record_end, &story->granted), EVLOCK_OK);
    int primary = sentinels_primary(&group);
    assert_true(has_lock(primary, story->holder));
    all_have_it(primary);
}

int story_goes_on(struct fixture *f, struct story *story, int old) {
    int primary = other_primary(f, old);
    assert_true(has_lock(primary, story->holder));
    int64_t left = key_ttl(&group.servers[primary], "a");
    await(f, story->lost.count || key_ttl(&group.servers[primary], "a") > left);
    assert_int_equal(story->lost.count, 0);
    assert_int_equal(story->granted.count, 0);
    assert_true(evlock_is_held(story->holder));
    return primary;
}

void story_end(struct fixture *f, struct story *story, int primary) {
    assert_status(await_release(f, story->holder), EVLOCK_OK);
    await(f, story->granted.count);
    assert_ended(&story->granted, EVLOCK_OK);
    assert_true(has_lock(primary, story->contender));
    assert_int_equal(story->lost.count, 0);
}

/* Whether it was had there; then it is given back. What is had elsewhere may be gone by then, with the server's data.
 */
static bool worked_at(struct fixture *f, evlock_client *client, int server) {
    evlock_options options = with_ttl(STORY_TTL);
    evlock *lock = lock_new_on(f, client, "works", &options);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    bool had = has_lock(server, lock);
    int status = await_release(f, lock);
    if (had)
        assert_status(status, EVLOCK_OK);
    lock_free(f, lock);
    return had;
}

void works_at(struct fixture *f, evlock_client *client, int server) {
    assert_true(worked_at(f, client, server));
    assert_false(key_exists(&group.servers[server], "works"));
}

void works_soon_at(struct fixture *f, evlock_client *client, int server) {
    await(f, worked_at(f, client, server));
}

void is_away(struct fixture *f, int status, const char *words) {
    await(f, f->away.count);
    assert_status(f->away.status, status);
    assert_says(f->away.error, words);
}
