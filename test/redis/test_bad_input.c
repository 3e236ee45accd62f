/*
 * Bad input: each mistake is told by a code and words of its own, as early as it can be known, and leaves nothing on
 * the server and no callback behind. Names of any bytes are no mistake. Each test is named after the behaviour.
 */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>

static const int64_t ten_years_ms = INT64_C(10) * 366 * 24 * 60 * 60 * 1000;

/* A refusal: this status, and words about it. */
#define assert_refused(call, expected)                                                                                 \
    do {                                                                                                               \
        assert_status((call), (expected));                                                                             \
        assert_string_not_equal(evlock_last_error(), "");                                                              \
    } while (0)

/* At the end of each test here, unless it says otherwise: nothing was written, nothing was told. */
static void assert_nothing_happened(struct fixture *f) {
    run_for(f, 50);
    assert_int_equal(f->ended.count, 0);
    assert_int_equal(server_integer(f->server, "DBSIZE"), 0);
    assert_int_equal(server_calls(f->server, "set"), 0);
}

static void refuse_name(struct fixture *f, const void *name, size_t len, const char *prefix, int status) {
    evlock_options options = {.size = sizeof(evlock_options)};
    evlock *lock = NULL;
    options.prefix = prefix;
    assert_refused(evlock_new(&lock, f->client, name, len, &options), status);
    assert_null(lock);
}

static void names_are_1_to_512_bytes(void **state) {
    struct fixture *f = *state;
    char name[514];
    memset(name, 'n', sizeof(name));
    name[513] = '\0';
    refuse_name(f, "", 0, NULL, EVLOCK_ENAME);
    refuse_name(f, "", EVLOCK_CSTRING, NULL, EVLOCK_ENAME);
    refuse_name(f, "", 0, "prefix", EVLOCK_ENAME);
    refuse_name(f, name, 513, NULL, EVLOCK_ENAME);
    refuse_name(f, name, EVLOCK_CSTRING, NULL, EVLOCK_ENAME);
    refuse_name(f, name, 511, "p:", EVLOCK_ENAME);
    refuse_name(f, name, SIZE_MAX - 1, NULL, EVLOCK_ENAME);
    refuse_name(f, NULL, 1, NULL, EVLOCK_ENAME);
    refuse_name(f, NULL, EVLOCK_CSTRING, NULL, EVLOCK_ENAME);
    refuse_name(f, NULL, 0, NULL, EVLOCK_ENAME);
    assert_nothing_happened(f);
}

static void name_works(struct fixture *f, const void *name, size_t len, const char *prefix, const char *key,
                       size_t key_len) {
    evlock_options options = {.size = sizeof(evlock_options)};
    evlock *lock = NULL;
    size_t got;
    options.prefix = prefix;
    assert_status(evlock_new(&lock, f->client, name, len, &options), EVLOCK_OK);
    assert_memory_equal(evlock_name(lock, &got), name, len);
    assert_int_equal(got, len);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_int_equal(server_integer(f->server, "EXISTS %b", key, key_len), 1);
    assert_int_equal(server_integer(f->server, "DBSIZE"), 1);
    assert_true(ask_owned(f, lock));
    assert_status(await_extend(f, lock, 1000, EVLOCK_EXTEND_ADD), EVLOCK_OK);
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_int_equal(server_integer(f->server, "DBSIZE"), 0);
    evlock_free(lock);
}

static void names_of_any_bytes_work(void **state) {
    struct fixture *f = *state;
    char every[256];
    char longest[512];
    for (int i = 0; i < 256; i++)
        every[i] = (char)i;
    memset(longest, 'n', sizeof(longest));
    name_works(f, "\0", 1, NULL, "\0", 1);
    name_works(f, "a\0b", 3, NULL, "a\0b", 3);
    name_works(f, "a\r\nb\n", 5, NULL, "a\r\nb\n", 5);
    name_works(f, "{a}{}%s%n$1 *", 13, NULL, "{a}{}%s%n$1 *", 13);
    name_works(f, every, 256, NULL, every, 256);
    name_works(f, longest, 512, NULL, longest, 512);
    name_works(f, longest + 2, 510, "nn", longest, 512);
    name_works(f, "x", 1, "", "x", 1);
}

static void refuse_options(struct fixture *f, const evlock_options *options, int status) {
    evlock *lock = NULL;
    assert_refused(evlock_new(&lock, f->client, "a", EVLOCK_CSTRING, options), status);
    assert_null(lock);
}

static void ttls_are_longer_than_their_drift(void **state) {
    struct fixture *f = *state;
    const int64_t bad[] = {-2, -30000, INT64_MIN, 1, 2, ten_years_ms + 1, INT64_MAX};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        evlock_options options = with_ttl(bad[i]);
        refuse_options(f, &options, EVLOCK_ETTL);
    }
    evlock_options shortest = with_ttl(3);
    evlock_options longest = with_ttl(ten_years_ms);
    lock_new(f, "a", &shortest);
    lock_new(f, "a", &longest);
    assert_nothing_happened(f);
}

static void the_longest_ttl_works(void **state) {
    struct fixture *f = *state;
    evlock_options options = with_ttl(ten_years_ms);
    evlock *lock = lock_new(f, "a", &options);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_true(key_ttl(f->server, "a") > options.ttl_ms - WAIT_MS);
    assert_true(evlock_remaining_ms(lock) > options.ttl_ms / 100 * 99 - WAIT_MS);
    assert_status(await_release(f, lock), EVLOCK_OK);
}

static void a_retry_delay_is_not_longer_than_the_ttl(void **state) {
    struct fixture *f = *state;
    evlock_options options = with_ttl(1000);
    options.retry_delay_ms = 1001;
    refuse_options(f, &options, EVLOCK_ERETRY);
    options.retry_delay_ms = 1000;
    lock_new(f, "a", &options);
    /* only where both were set */
    options = with_ttl(50);
    lock_new(f, "a", &options);
    options = (evlock_options){.size = sizeof(evlock_options)};
    options.retry_delay_ms = 60 * 60 * 1000;
    lock_new(f, "a", &options);
    /* a lock that never expires is waited for at any pace */
    options.ttl_ms = EVLOCK_NO_EXPIRY;
    lock_new(f, "a", &options);
    assert_nothing_happened(f);
}

static void a_renewal_comes_before_the_deadline(void **state) {
    struct fixture *f = *state;
    evlock_options options = with_ttl(1000);
    options.auto_renewal = true;
    options.renewal_interval_ms = 1000;
    refuse_options(f, &options, EVLOCK_ERENEWAL);
    options.renewal_interval_ms = 988;
    refuse_options(f, &options, EVLOCK_ERENEWAL);
    options.renewal_interval_ms = 987;
    lock_new(f, "a", &options);
    assert_nothing_happened(f);
}

static void a_lock_without_ttl_is_not_renewed(void **state) {
    struct fixture *f = *state;
    evlock_options options = with_ttl(EVLOCK_NO_EXPIRY);
    options.auto_renewal = true;
    refuse_options(f, &options, EVLOCK_ERENEWAL);
    assert_nothing_happened(f);
}

static void options_out_of_range_are_refused(void **state) {
    struct fixture *f = *state;
    const struct {
        size_t offset;
        int64_t value;
    } bad[] = {
        {offsetof(evlock_options, retry_delay_ms), -1},
        {offsetof(evlock_options, retry_delay_ms), INT64_MAX},
        {offsetof(evlock_options, retry_jitter), -2},
        {offsetof(evlock_options, retry_jitter), 101},
        {offsetof(evlock_options, max_attempts), -2},
        {offsetof(evlock_options, max_wait_ms), -2},
        {offsetof(evlock_options, max_wait_ms), INT64_MAX},
        {offsetof(evlock_options, renewal_interval_ms), -1},
        {offsetof(evlock_options, renewal_interval_ms), INT64_MAX},
        {offsetof(evlock_options, max_hold_ms), -2},
        {offsetof(evlock_options, max_hold_ms), INT64_MAX},
        {offsetof(evlock_options, at_risk_percent), 100},
        {offsetof(evlock_options, at_risk_percent), -1},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        evlock_options options = {.size = sizeof(evlock_options)};
        evlock *lock = NULL;
        options.auto_renewal = true;
        memcpy((char *)&options + bad[i].offset, &bad[i].value, sizeof(bad[i].value));
        int status = evlock_new(&lock, f->client, "a", EVLOCK_CSTRING, &options);
        if (status != EVLOCK_EINVAL || lock || !evlock_last_error()[0])
            fail_msg("row %zu: %s (%s)", i, evlock_strerror(status), evlock_last_error());
    }
    evlock_options options = {.size = sizeof(evlock_options)};
    options.size = 0;
    refuse_options(f, &options, EVLOCK_EINVAL);
    assert_nothing_happened(f);
}

static void a_handle_needs_its_pieces(void **state) {
    struct fixture *f = *state;
    evlock *lock = NULL;
    assert_refused(evlock_new(NULL, f->client, "a", 1, NULL), EVLOCK_EINVAL);
    assert_refused(evlock_new(&lock, NULL, "a", 1, NULL), EVLOCK_EINVAL);
    assert_null(lock);
    assert_nothing_happened(f);
}

static void null_handles_are_refused(void **state) {
    struct fixture *f = *state;
    char token[128];
    size_t len = 5;
    assert_refused(evlock_acquire(NULL, NULL, record_end, &f->ended), EVLOCK_EINVAL);
    assert_refused(evlock_cancel(NULL), EVLOCK_EINVAL);
    assert_refused(evlock_release(NULL, record_end, &f->ended), EVLOCK_EINVAL);
    assert_refused(evlock_extend(NULL, 1000, EVLOCK_EXTEND_ADD, record_end, &f->ended), EVLOCK_EINVAL);
    assert_refused(evlock_export(NULL, token, sizeof(token), &len), EVLOCK_EINVAL);
    assert_refused(evlock_adopt(NULL, "t", 1, record_end, &f->ended), EVLOCK_EINVAL);
    assert_refused(evlock_query(NULL, EVLOCK_QUERY_LOCKED, record_answer, &f->ended), EVLOCK_EINVAL);
    assert_refused(evlock_break(NULL, record_end, &f->ended), EVLOCK_EINVAL);
    assert_refused(evlock_client_close(NULL, record_closed, &f->ended), EVLOCK_EINVAL);
    assert_false(evlock_is_held(NULL));
    assert_int_equal(evlock_remaining_ms(NULL), 0);
    assert_null(evlock_token(NULL, &len));
    assert_null(evlock_name(NULL, &len));
    assert_int_equal(evlock_client_connection(NULL), EVLOCK_AWAY);
    evlock_free(NULL);
    evlock_client_free(NULL);
    assert_nothing_happened(f);
}

static void a_query_needs_a_callback(void **state) {
    struct fixture *f = *state;
    assert_refused(evlock_query(lock_new(f, "a", NULL), EVLOCK_QUERY_LOCKED, NULL, NULL), EVLOCK_EINVAL);
    assert_nothing_happened(f);
}

/* A later library may know more. */
static void a_query_asks_for_what_is_known(void **state) {
    static const unsigned bad[] = {0, 64, EVERY_QUERY | 64, 1U << 31, ~0U};
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_refused(evlock_query(lock, bad[i], record_answer, &f->ended), EVLOCK_EINVAL);
    assert_nothing_happened(f);
}

static void acquire_options_are_checked(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    evlock_acquire_options options = {.size = sizeof(evlock_acquire_options)};
    options.max_attempts = -2;
    assert_refused(evlock_acquire(lock, &options, record_end, &f->ended), EVLOCK_EINVAL);
    options = (evlock_acquire_options){.size = sizeof(evlock_acquire_options)};
    options.max_wait_ms = -2;
    assert_refused(evlock_acquire(lock, &options, record_end, &f->ended), EVLOCK_EINVAL);
    options = (evlock_acquire_options){.size = sizeof(evlock_acquire_options)};
    options.size = 0;
    assert_refused(evlock_acquire(lock, &options, record_end, &f->ended), EVLOCK_EINVAL);
    assert_nothing_happened(f);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
}

static void tokens_are_1_to_128_bytes(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    evlock_acquire_options options = {.size = sizeof(evlock_acquire_options)};
    char token[130];
    memset(token, 't', sizeof(token));
    token[129] = '\0';
    options.token = token;
    const size_t bad[] = {0, 129, EVLOCK_CSTRING, SIZE_MAX - 1};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        options.token_len = bad[i];
        assert_refused(evlock_acquire(lock, &options, record_end, &f->ended), EVLOCK_ETOKEN);
        assert_null(strstr(evlock_last_error(), "ttt"));
        assert_refused(evlock_adopt(lock, token, bad[i], record_end, &f->ended), EVLOCK_ETOKEN);
    }
    options.token_len = 0; /* forgotten */
    assert_refused(evlock_acquire(lock, &options, record_end, &f->ended), EVLOCK_ETOKEN);
    assert_non_null(strstr(evlock_last_error(), "EVLOCK_CSTRING"));
    assert_refused(evlock_adopt(lock, NULL, 5, record_end, &f->ended), EVLOCK_ETOKEN);
    assert_nothing_happened(f);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
}

static void extensions_are_checked(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    f->ended = (struct record){0};
    const int64_t bad[] = {0, -1, INT64_MIN, INT64_MAX, ten_years_ms + 1};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_refused(evlock_extend(lock, bad[i], EVLOCK_EXTEND_ADD, record_end, &f->ended), EVLOCK_ETTL);
        assert_refused(evlock_extend(lock, bad[i], EVLOCK_EXTEND_REPLACE, record_end, &f->ended), EVLOCK_ETTL);
    }
    assert_refused(evlock_extend(lock, 2, EVLOCK_EXTEND_REPLACE, record_end, &f->ended), EVLOCK_ETTL);
    assert_refused(evlock_extend(lock, 3, EVLOCK_EXTEND_REPLACE, record_end, &f->ended), EVLOCK_ETTL); /* the lead */
    for (int mode = -1; mode <= 3; mode += 4)
        assert_refused(evlock_extend(lock, 1000, (enum evlock_extend_mode)mode, record_end, &f->ended), EVLOCK_EINVAL);
    assert_refused(evlock_extend(lock, 1, EVLOCK_EXTEND_RESET, record_end, &f->ended), EVLOCK_EINVAL);
    assert_refused(evlock_extend(lock, -1, EVLOCK_EXTEND_RESET, record_end, &f->ended), EVLOCK_EINVAL);
    run_for(f, 50);
    assert_int_equal(f->ended.count, 0);
    assert_true(evlock_is_held(lock));
    assert_true(key_ttl(f->server, "a") > 0);
}

static void refuse_url(struct fixture *f, const char *url, int status) {
    evlock_client *client = NULL;
    int got = evlock_client_new(&client, loop_for_evlock(f->loop), url, NULL);
    if (got != status)
        fail_msg("%s: %s, not %s", url, evlock_strerror(got), evlock_strerror(status));
    assert_string_not_equal(evlock_last_error(), "");
    assert_null(strstr(evlock_last_error(), "s3cret"));
    assert_null(client);
}

static void urls_are_checked(void **state) {
    struct fixture *f = *state;
    const char *const malformed[] = {
        "",
        "redis",
        "redis:",
        "redis://",
        "redis:///",
        "127.0.0.1:6379",
        "redis://:s3cret@",
        "redis://host:port",
        "redis://host:0",
        "redis://host:65536",
        "redis://host:-1",
        "redis://host:6379/x",
        "redis://host:6379/-1",
        "redis://[::1",
        "redis://[nonsense]",
        "redis://ho%2",
        "redis://u:s3cret%zz@host",
        "redis://host%00",
        "unix://",
        "unix://relative/path.sock",
        "unix:///path?db=x",
        "unix:///path?dc=1",
        "unix:///path?db=-1",
    };
    for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++)
        refuse_url(f, malformed[i], EVLOCK_EURL);
    refuse_url(f, NULL, EVLOCK_EINVAL);
    assert_nothing_happened(f);
}

static void assert_words(const char *words) {
    if (!strstr(evlock_last_error(), words))
        fail_msg("\"%s\" is not in \"%s\"", words, evlock_last_error());
}

/* The earliest call says which URL is wrong. */
static void the_urls_of_several_servers_are_checked(void **state) {
    struct fixture *f = *state;
    const struct {
        const char *text;
        int status;
        const char *words;
    } bad[] = {
        {"redis://a redis://b", EVLOCK_EURL, "\"quorum:URL URL URL\""},
        {"redis://:s3cret@a redis://:s3cret@b", EVLOCK_EURL, "\"quorum:URL URL URL\""},
        {"redis://a,redis://b", EVLOCK_EURL, "\"quorum:URL URL URL\""},
        {"redis://a,b", EVLOCK_EURL, "\"quorum:URL URL URL\""},
        {"quorum:redis://a,redis://b", EVLOCK_EURL, "with spaces"},
        {"redis://:s3cret s3cret@a", EVLOCK_EURL, "%20"},
        {"quorum:", EVLOCK_EURL, "a URL for each server"},
        {"quorum:   ", EVLOCK_EURL, "a URL for each server"},
        {"quorum", EVLOCK_EURL, "must begin with"},
        {"quorum://a", EVLOCK_EURL, "URL: "},
        {"quorum:redis://a quorum:redis://b", EVLOCK_ESCHEME, "node 1"},
        {"quorum:redis://a redis://u:s3cret@b:x redis://c", EVLOCK_EURL, "node 1: the port"},
        {"quorum:redis://a redis://:s3cret s3cret@b redis://c", EVLOCK_EURL, "node 1: "},
        {"quorum:redis://a\tredis://b", EVLOCK_EURL, "URL: "},
        {"quorum:redis://a redis://b\n", EVLOCK_EURL, "node 1: byte 10"},
        {"quorum:redis://a redis://b redis://:s3cret@a:6379/0", EVLOCK_ESAME, "node 2: it names the server of node 0"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        refuse_url(f, bad[i].text, bad[i].status);
        assert_words(bad[i].words);
    }
    assert_nothing_happened(f);
}

static void spaces_between_urls_may_be_many(void **state) {
    struct fixture *f = *state;
    evlock_node_info info;
    char url[300];
    snprintf(url, sizeof(url), "QuOrUm:  %s://127.0.0.1:1   %s  ", server_scheme(), f->server->url);
    evlock_client *client = client_new(f, url, NULL);
    assert_status(evlock_client_node(client, 1, &info, sizeof(info)), EVLOCK_OK);
    assert_refused(evlock_client_node(client, 2, &info, sizeof(info)), EVLOCK_EINVAL);
    snprintf(url, sizeof(url), "quorum:%s", f->server->url);
    client = client_new(f, url, NULL); /* as without the word */
    assert_refused(evlock_client_node(client, 1, &info, sizeof(info)), EVLOCK_EINVAL);
    assert_status(await_acquire(f, lock_new_on(f, client, "a", NULL), NULL), EVLOCK_OK);
}

static void schemes_are_checked(void **state) {
    struct fixture *f = *state;
    refuse_url(f, "http://host", EVLOCK_ESCHEME);
    refuse_url(f, "memcached://host", EVLOCK_ESCHEME);
    refuse_url(f, "redisss://user:s3cret@host", EVLOCK_ESCHEME);
    assert_nothing_happened(f);
}

static void socket_paths_are_checked(void **state) {
    struct fixture *f = *state;
    char url[300] = "unix:///";
    memset(url + 8, 'p', 108);
    refuse_url(f, url, EVLOCK_EPATH);
    memset(url + 8, 'p', 250);
    refuse_url(f, url, EVLOCK_EPATH);
    assert_nothing_happened(f);
}

static void clients_need_their_pieces(void **state) {
    struct fixture *f = *state;
    evlock_client *client = NULL;
    assert_refused(evlock_client_new(NULL, loop_for_evlock(f->loop), f->server->url, NULL), EVLOCK_EINVAL);
    assert_refused(evlock_client_new(&client, NULL, f->server->url, NULL), EVLOCK_EINVAL);
    assert_refused(evlock_client_new(&client, &(evlock_loop){0}, f->server->url, NULL), EVLOCK_EINVAL);
    const size_t offsets[] = {
        offsetof(evlock_client_options, connect_timeout_ms), offsetof(evlock_client_options, command_timeout_ms),
        offsetof(evlock_client_options, backoff_min_ms),     offsetof(evlock_client_options, backoff_max_ms),
        offsetof(evlock_client_options, max_inflight),
    };
    const int64_t bad[] = {-2, -1, INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]) * 4; i++) {
        evlock_client_options options = client_options(f);
        memcpy((char *)&options + offsets[i / 4], &bad[i % 4], sizeof(bad[0]));
        assert_refused(evlock_client_new(&client, loop_for_evlock(f->loop), f->server->url, &options), EVLOCK_EINVAL);
    }
    evlock_client_options options = client_options(f);
    options.size = 0;
    assert_refused(evlock_client_new(&client, loop_for_evlock(f->loop), f->server->url, &options), EVLOCK_EINVAL);
    options = client_options(f);
    options.log_level = 17;
    assert_refused(evlock_client_new(&client, loop_for_evlock(f->loop), f->server->url, &options), EVLOCK_EINVAL);
    assert_null(client);
    assert_nothing_happened(f);
}

static void no_server_is_told_by_the_calls(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = plain_client_options(f);
    char url[160];
    snprintf(url, sizeof(url), "unix://%s/nothing-here", f->server->folder);
    client_new(f, url, &options);
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(await_try(f, lock), EVLOCK_EUNREACHABLE);
    assert_string_not_equal(f->ended.error, "");
    await(f, f->away.status == EVLOCK_EUNREACHABLE);
    assert_string_not_equal(f->away.error, "");
}

static void a_wrong_password_is_told_by_the_calls(void **state) {
    struct fixture *f = *state;
    char url[160];
    server_do(f->server, "ACL SETUSER alice on >right ~* +@all");
    snprintf(url, sizeof(url), "%s://alice:wr0ng@127.0.0.1:%d", server_scheme(), f->server->port);
    client_new(f, url, NULL);
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_EAUTH);
    assert_string_not_equal(f->ended.error, "");
    assert_null(strstr(f->ended.error, "wr0ng"));
    await(f, f->away.status == EVLOCK_EAUTH);
    assert_null(f->log ? strstr(f->log, "wr0ng") : NULL);
    server_do(f->server, "ACL DELUSER alice");
}

static void calls_on_a_handle_whose_client_is_gone(void **state) {
    struct fixture *f = *state;
    char token[128];
    size_t len;
    evlock *lock = lock_new(f, "a", NULL);
    client_free(f, f->client);
    assert_refused(evlock_acquire(lock, NULL, record_end, &f->ended), EVLOCK_ECLOSED);
    assert_refused(evlock_cancel(lock), EVLOCK_ECLOSED);
    assert_refused(evlock_release(lock, record_end, &f->ended), EVLOCK_ECLOSED);
    assert_refused(evlock_extend(lock, 1000, EVLOCK_EXTEND_ADD, record_end, &f->ended), EVLOCK_ECLOSED);
    assert_refused(evlock_export(lock, token, sizeof(token), &len), EVLOCK_ECLOSED);
    assert_refused(evlock_adopt(lock, "t", 1, record_end, &f->ended), EVLOCK_ECLOSED);
    assert_refused(evlock_query(lock, EVLOCK_QUERY_LOCKED, record_answer, &f->ended), EVLOCK_ECLOSED);
    assert_refused(evlock_break(lock, record_end, &f->ended), EVLOCK_ECLOSED);
    assert_false(evlock_is_held(lock));
    assert_int_equal(evlock_remaining_ms(lock), 0);
    assert_null(evlock_token(lock, &len));
    assert_string_equal(evlock_name(lock, NULL), "a");
    assert_nothing_happened(f);
}

static void refusals_have_words(void **state) {
    struct fixture *f = *state;
    evlock_options no_ttl = with_ttl(EVLOCK_NO_EXPIRY);
    evlock *lock = lock_new(f, "a", &no_ttl);
    assert_refused(evlock_release(lock, NULL, NULL), EVLOCK_ENOTHELD);
    assert_refused(evlock_extend(lock, 1000, EVLOCK_EXTEND_ADD, NULL, NULL), EVLOCK_ENOTHELD);
    assert_refused(evlock_cancel(lock), EVLOCK_ENOTHELD);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_refused(evlock_acquire(lock, NULL, NULL, NULL), EVLOCK_EALREADY);
    assert_refused(evlock_extend(lock, 1000, EVLOCK_EXTEND_ADD, NULL, NULL), EVLOCK_ENOTTL);
    assert_status(evlock_release(lock, NULL, NULL), EVLOCK_OK);
    assert_refused(evlock_release(lock, NULL, NULL), EVLOCK_EALREADY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(names_are_1_to_512_bytes),
        TEST(names_of_any_bytes_work),
        TEST(ttls_are_longer_than_their_drift),
        TEST(the_longest_ttl_works),
        TEST(a_retry_delay_is_not_longer_than_the_ttl),
        TEST(a_renewal_comes_before_the_deadline),
        TEST(a_lock_without_ttl_is_not_renewed),
        TEST(options_out_of_range_are_refused),
        TEST(a_handle_needs_its_pieces),
        TEST(null_handles_are_refused),
        TEST(a_query_needs_a_callback),
        TEST(a_query_asks_for_what_is_known),
        TEST(acquire_options_are_checked),
        TEST(tokens_are_1_to_128_bytes),
        TEST(extensions_are_checked),
        TEST(urls_are_checked),
        TEST(the_urls_of_several_servers_are_checked),
        TEST(spaces_between_urls_may_be_many),
        TEST(schemes_are_checked),
        TEST(socket_paths_are_checked),
        TEST(clients_need_their_pieces),
        TEST_BARE(no_server_is_told_by_the_calls),
        TEST_BARE(a_wrong_password_is_told_by_the_calls),
        TEST(calls_on_a_handle_whose_client_is_gone),
        TEST(refusals_have_words),
    };
    return run_suite("bad_input", tests);
}
