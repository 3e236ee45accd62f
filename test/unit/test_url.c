/*
 * URLs: what is taken and what it means, what is refused and in which words, and that a password stays where it is.
 */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <evlock/evlock.h>
#include <evlock/libevent.h>

#include "counted.h"
#include "status.h"
#include "url.h"

static struct words words;

/* As struct url, of constant strings. */
struct parts {
    const char *host, *path, *user, *password, *master, *second;
    int port, db;
    bool literal, tls;
    enum url_kind kind;
    unsigned others;
    int second_port;
};

static const struct {
    const char *text;
    struct parts parts;
} good[] = {
    {"redis://localhost", {.host = "localhost", .port = 6379}},
    {"redis://localhost/", {.host = "localhost", .port = 6379}},
    {"redis://localhost:1", {.host = "localhost", .port = 1}},
    {"redis://localhost:65535/2147483647", {.host = "localhost", .port = 65535, .db = 2147483647}},
    {"valkey://:pw@localhost:7000/2", {.host = "localhost", .port = 7000, .password = "pw", .db = 2}},
    {"REDIS://Host", {.host = "Host", .port = 6379}},
    {"redis://127.0.0.1:7000/3", {.host = "127.0.0.1", .port = 7000, .db = 3, .literal = true}},
    {"redis://127.0.0.1.example", {.host = "127.0.0.1.example", .port = 6379}},
    {"redis://[::1]", {.host = "::1", .port = 6379, .literal = true}},
    {"redis://[2001:db8::1]:7/9", {.host = "2001:db8::1", .port = 7, .db = 9, .literal = true}},
    {"redis://[fe80::1%25eth0]", {.host = "fe80::1%eth0", .port = 6379, .literal = true}},
    {"redis://:pw@h", {.host = "h", .port = 6379, .password = "pw"}},
    {"redis://me:pw@h", {.host = "h", .port = 6379, .user = "me", .password = "pw"}},
    {"redis://me:@h", {.host = "h", .port = 6379, .user = "me", .password = ""}},
    {"redis://me:a:b@h", {.host = "h", .port = 6379, .user = "me", .password = "a:b"}},
    {"redis://me:a@b@h", {.host = "h", .port = 6379, .user = "me", .password = "a@b"}},
    {"redis://%40%3A:%2f%3F%23%25%ff@h", {.host = "h", .port = 6379, .user = "@:", .password = "/?#%\xff"}},
    {"redis://a%2Db:%36%33/%31", {.host = "a-b", .port = 63, .db = 1}},
    {"rediss://:pw@localhost", {.host = "localhost", .port = 6379, .password = "pw", .tls = true}},
    {"valkeys://127.0.0.1:1/2", {.host = "127.0.0.1", .port = 1, .db = 2, .literal = true, .tls = true}},
    {"unix:///run/redis.sock", {.path = "/run/redis.sock"}},
    {"unix:///run/redis.sock?db=12", {.path = "/run/redis.sock", .db = 12}},
    {"redis+sentinel://a/main", {.host = "a", .port = 26379, .kind = URL_SENTINELS, .master = "main"}},
    {"rediss+sentinel://:pw@a:1,b,[::1]:3/m%61in/7",
     {.host = "a",
      .port = 1,
      .kind = URL_SENTINELS,
      .master = "main",
      .db = 7,
      .tls = true,
      .password = "pw",
      .others = 2,
      .second = "b",
      .second_port = 26379}},
    {"valkey+sentinel://a/main", {.host = "a", .port = 26379, .kind = URL_SENTINELS, .master = "main"}},
    {"valkeys+sentinel://a/main", {.host = "a", .port = 26379, .kind = URL_SENTINELS, .master = "main", .tls = true}},
    {"redis-sentinel://a/main/", {.host = "a", .port = 26379, .kind = URL_SENTINELS, .master = "main"}},
    {"redis+cluster://a", {.host = "a", .port = 6379, .kind = URL_CLUSTER}},
    {"redis+cluster://a:1,10.0.0.1:2/",
     {.host = "a", .port = 1, .kind = URL_CLUSTER, .others = 1, .second = "10.0.0.1", .second_port = 2}},
    {"rediss+cluster://a", {.host = "a", .port = 6379, .kind = URL_CLUSTER, .tls = true}},
    {"valkey+cluster://a", {.host = "a", .port = 6379, .kind = URL_CLUSTER}},
    {"valkeys+cluster://a", {.host = "a", .port = 6379, .kind = URL_CLUSTER, .tls = true}},
    {"unix:///\xc3\xa4", {.path = "/\xc3\xa4"}},
    {"unix:///a%20b%3f", {.path = "/a b?"}},
};

static void assert_same(const char *found, const char *wanted) {
    if (wanted)
        assert_string_equal(found, wanted);
    else
        assert_null(found);
}

CASE(good_urls_are_taken) {
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct url url;
        print_message("# %s\n", good[i].text);
        assert_int_equal(evl_url_parse(&url, good[i].text, strlen(good[i].text), &words).status, EVLOCK_OK);
        assert_same(url.host, good[i].parts.host);
        assert_same(url.path, good[i].parts.path);
        assert_same(url.user, good[i].parts.user);
        assert_same(url.password, good[i].parts.password);
        assert_int_equal(url.port, good[i].parts.port);
        assert_int_equal(url.db, good[i].parts.db);
        assert_int_equal(url.literal, good[i].parts.literal);
        assert_int_equal(url.tls, good[i].parts.tls);
        assert_int_equal(url.kind, good[i].parts.kind);
        assert_same(url.master, good[i].parts.master);
        assert_int_equal(url.other_count, good[i].parts.others);
        if (good[i].parts.others) {
            assert_same(url.others[0].host, good[i].parts.second);
            assert_int_equal(url.others[0].port, good[i].parts.second_port);
        }
        evl_url_free(&url);
        assert_null(url.host);
        assert_null(url.password);
    }
}

/* Each with a part of the words that it is refused with. */
static const struct {
    const char *text;
    int status;
    const char *words;
} bad[] = {
    {"", EVLOCK_EURL, "begin with"},
    {"localhost:6379", EVLOCK_EURL, "begin with"},
    {"redis:/localhost", EVLOCK_EURL, "begin with"},
    {"http://localhost", EVLOCK_ESCHEME, "scheme"},
    {"valkey:/localhost", EVLOCK_EURL, "begin with"},
    {"redis://", EVLOCK_EURL, "no host"},
    {"redis://h1,h2", EVLOCK_EURL, "one server"},
    {"redis://h1:6379,h2:6379", EVLOCK_EURL, "one server"},
    {"redis://h1,redis://h2", EVLOCK_EURL, "one server"},
    {"redis://h1,redis://me:secret@h2", EVLOCK_EURL, "one server"},
    {"redis:///1", EVLOCK_EURL, "no host"},
    {"redis://:secret@:1", EVLOCK_EURL, "no host"},
    {"redis://[]", EVLOCK_EURL, "no host"},
    {"redis://[::1", EVLOCK_EURL, "not closed"},
    {"redis://[127.0.0.1]", EVLOCK_EURL, "IPv6"},
    {"redis://[::1%25]", EVLOCK_EURL, "IPv6"},
    {"redis://[::ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]", EVLOCK_EURL, "IPv6"},
    {"redis://2001:db8::1", EVLOCK_EURL, "IPv6"},
    {"redis://::1", EVLOCK_EURL, "IPv6"},
    {"redis://::1:6379", EVLOCK_EURL, "IPv6"},
    {"redis://[::1]6379", EVLOCK_EURL, "after the host"},
    {"redis://secret@h", EVLOCK_EURL, "user:password"},
    {"redis://@h", EVLOCK_EURL, "user:password"},
    {"redis://h:", EVLOCK_EURL, "port"},
    {"redis://h:0", EVLOCK_EURL, "port"},
    {"redis://h:65536", EVLOCK_EURL, "port"},
    {"redis://h:-1", EVLOCK_EURL, "port"},
    {"redis://h:1x", EVLOCK_EURL, "port"},
    {"redis://h:18446744073709551617", EVLOCK_EURL, "port"},
    {"redis://me:se/cret@h", EVLOCK_EURL, "%2F"},
    {"redis://me:se?cret@h", EVLOCK_EURL, "%3F"},
    {"redis://h/x", EVLOCK_EURL, "database"},
    {"redis://h/-1", EVLOCK_EURL, "database"},
    {"redis://h/2147483648", EVLOCK_EURL, "database"},
    {"redis://h/1/", EVLOCK_EURL, "nothing may follow"},
    {"redis://h?db=1", EVLOCK_EURL, "'/' and a database"},
    {"redis://h/1?x", EVLOCK_EURL, "nothing may follow"},
    {"redis://h#1", EVLOCK_EURL, "nothing may follow"},
    {"redis://h%", EVLOCK_EURL, "in the host"},
    {"redis://h%4", EVLOCK_EURL, "in the host"},
    {"redis://h%4g", EVLOCK_EURL, "in the host"},
    {"redis://h%g4", EVLOCK_EURL, "in the host"},
    {"redis://h%00", EVLOCK_EURL, "in the host"},
    {"redis://a%zz:secret@h", EVLOCK_EURL, "in the user"},
    {"redis://me:secret%@h", EVLOCK_EURL, "in the password"},
    {"redis://h:%zz", EVLOCK_EURL, "in the port"},
    {"redis://h/%zz", EVLOCK_EURL, "in the database"},
    {"unix:///%00", EVLOCK_EURL, "in the path"},
    {"redis://h ", EVLOCK_EURL, "byte 10 "},
    {"redis://h\n", EVLOCK_EURL, "%0A"},
    {"redis://:secret\x7f@h", EVLOCK_EURL, "%7F"},
    {"redis+sentinel://a", EVLOCK_EURL, "the name that they know"},
    {"redis+sentinel://a/", EVLOCK_EURL, "the name that they know"},
    {"redis+sentinel:///main", EVLOCK_EURL, "no host"},
    {"redis+sentinel://a,/main", EVLOCK_EURL, "no host"},
    {"redis+sentinel://a,:1/main", EVLOCK_EURL, "no host"},
    {"redis+sentinel://:secret@a,b:0/main", EVLOCK_EURL, "port"},
    {"redis+sentinel://:secret@a,:secret@b/main", EVLOCK_EURL, "once"},
    {"redis+cluster://me:secret@a,me:secret@b", EVLOCK_EURL, "once"},
    {"redis+sentinel://a/main/x", EVLOCK_EURL, "database"},
    {"redis+sentinel://a/main/1/2", EVLOCK_EURL, "nothing may follow"},
    {"redis+sentinel://a/%zz", EVLOCK_EURL, "master's name"},
    {"redis+sentinel://a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p/main", EVLOCK_EURL, "more addresses"},
    {"redis+cluster://a/1", EVLOCK_EURL, "one database"},
    {"redis+cluster://", EVLOCK_EURL, "no host"},
    {"redis+cluster://a?x", EVLOCK_EURL, "nothing may follow"},
    {"unix://", EVLOCK_EURL, "absolute"},
    {"unix://run/redis.sock", EVLOCK_EURL, "absolute"},
    {"unix:///a?", EVLOCK_EURL, "?db=N"},
    {"unix:///a?x=1", EVLOCK_EURL, "?db=N"},
    {"unix:///a#b", EVLOCK_EURL, "?db=N"},
    {"unix:///a?db=", EVLOCK_EURL, "database"},
    {"unix:///a?db=1&x=2", EVLOCK_EURL, "database"},
};

CASE(bad_urls_are_refused_in_words) {
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct url url = {.port = 12345};
        struct trouble trouble;
        print_message("# %s\n", bad[i].text);
        counted_begin("secret");
        trouble = evl_url_parse(&url, bad[i].text, strlen(bad[i].text), &words);
        assert_int_equal(trouble.status, bad[i].status);
        assert_int_equal(url.port, 12345);
        assert_non_null(strstr(trouble.words, bad[i].words));
        assert_null(strstr(trouble.words, "secret"));
        assert_int_equal(counted_live(), 0);
        assert_false(counted_leaked_secret());
        counted_end();
    }
}

static void refuses(const char *url, const evlock_client_options *options, int status, const char *in_words) {
    const evlock_loop loop = evlock_libevent(NULL);
    evlock_client *client = NULL;
    assert_int_equal(evlock_client_new(&client, &loop, url, options), status);
    assert_string_equal(evlock_last_error(), in_words);
    assert_null(client);
}

CASE(words_say_which_url_is_refused) {
    evlock_client_options options = {.size = sizeof(evlock_client_options)};
    refuses(NULL, NULL, EVLOCK_EINVAL, "the URL is NULL");
    refuses("redis://", NULL, EVLOCK_EURL, "URL: no host");
    refuses("quorum:redis://", NULL, EVLOCK_EURL, "URL: no host");
    refuses("quorum:redis://a redis://b%", NULL, EVLOCK_EURL,
            "the URL of node 1: in the host, '%' is not followed by two hexadecimal digits other than 00");
    options.user = "me";
    refuses("redis://a", &options, EVLOCK_EINVAL, "a user needs a password");
    refuses("quorum:redis://a redis://b", &options, EVLOCK_EINVAL, "the URL of node 0: a user needs a password");
}

CASE(a_path_fits_or_is_refused) {
    char text[200];
    struct url url;
    snprintf(text, sizeof text, "unix:///%0106d", 0);
    assert_int_equal(evl_url_parse(&url, text, strlen(text), &words).status, EVLOCK_OK);
    assert_int_equal(strlen(url.path), 107);
    evl_url_free(&url);
    snprintf(text, sizeof text, "unix:///%0107d", 0);
    assert_int_equal(evl_url_parse(&url, text, strlen(text), &words).status, EVLOCK_EPATH);
    assert_non_null(strstr(words.text, "108 bytes"));
    snprintf(text, sizeof text, "unix:///%%30%0105d", 0);
    assert_int_equal(evl_url_parse(&url, text, strlen(text), &words).status, EVLOCK_OK);
    evl_url_free(&url);
}

static void assert_written(const char *text, const char *address) {
    char written[EVLOCK_ADDRESS_SIZE];
    struct url url;

    assert_int_equal(evl_url_parse(&url, text, strlen(text), &words).status, EVLOCK_OK);
    evl_url_write_address(&url, written);
    assert_string_equal(written, address);
    evl_url_free(&url);
}

CASE(an_address_is_written_without_who_logs_in_there) {
    char text[400], address[EVLOCK_ADDRESS_SIZE];
    struct url nowhere = {0};

    assert_written("redis://user:secret@example.com/3", "example.com:6379");
    assert_written("rediss://[::1]:7000", "[::1]:7000");
    assert_written("unix:///run/redis.sock?db=1", "/run/redis.sock");
    snprintf(text, sizeof text, "unix:///%0106d", 0);
    assert_written(text, text + strlen("unix://"));
    snprintf(text, sizeof text, "redis://%0200d:65535", 0); /* it is cut, and the port is there */
    snprintf(address, sizeof address, "%0100d:65535", 0);
    assert_written(text, address);
    evl_url_write_address(&nowhere, address);
    assert_string_equal(address, "");
}

CASE(there_are_as_many_urls_as_nodes_and_no_more) {
    char text[16 * EVLOCK_NODES_MAX] = "quorum:";
    struct url_list list;

    for (unsigned i = 1; i <= EVLOCK_NODES_MAX; i++) {
        strcat(text, " unix:///a");
        assert_int_equal(evl_url_list(&list, text).status, EVLOCK_OK);
        assert_int_equal(list.count, i);
        assert_int_equal(list.urls[i - 1].len, strlen("unix:///a"));
        assert_memory_equal(list.urls[i - 1].at, "unix:///a", strlen("unix:///a"));
    }
    strcat(text, " unix:///a");
    assert_int_equal(evl_url_list(&list, text).status, EVLOCK_EURL);
}

CASE(a_password_is_wiped) {
    struct url url;
    counted_begin("secret");
    assert_int_equal(evl_url_parse(&url, "redis://me:secret@h", 19, &words).status, EVLOCK_OK);
    evl_url_free(&url);
    assert_int_equal(counted_live(), 0);
    assert_false(counted_leaked_secret());

    /* Decoding shortens: "%78%78%78ecret" leaves the tail of the longer text behind the shorter one. */
    counted_begin("ecret");
    assert_int_equal(evl_url_parse(&url, "redis://me:%78%78%78ecret@h", 27, &words).status, EVLOCK_OK);
    evl_url_free(&url);
    assert_false(counted_leaked_secret());
    counted_end();
}

static int announced(const char *host, int64_t port, bool literal) {
    const struct url pattern = {.tls = true, .db = 3};
    struct url url = {0};
    int status = evl_url_announced(&url, &pattern, host, port);
    if (status == EVLOCK_OK) {
        assert_string_equal(url.host, host);
        assert_int_equal(url.port, port);
        assert_true(url.tls && url.db == 3 && url.literal == literal);
    }
    evl_url_free(&url);
    return status;
}

/* What a Sentinel, or a node of a cluster, says of another server. */
CASE(an_announced_address_is_one_or_refused) {
    static const int64_t ports[] = {0, -1, 65536, INT64_MAX, INT64_MIN};
    char host[NAME_MAX + 2];
    for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++)
        assert_int_equal(announced("h", ports[i], false), EVLOCK_EURL);
    assert_int_equal(announced("h", 1, false), EVLOCK_OK);
    assert_int_equal(announced("127.0.0.1", 65535, true), EVLOCK_OK);
    assert_int_equal(announced("::1", 6379, true), EVLOCK_OK);
    assert_int_equal(announced("", 6379, false), EVLOCK_EURL);
    memset(host, 'h', sizeof(host));
    host[NAME_MAX] = '\0';
    assert_int_equal(announced(host, 6379, false), EVLOCK_OK);
    host[NAME_MAX] = 'h', host[NAME_MAX + 1] = '\0';
    assert_int_equal(announced(host, 6379, false), EVLOCK_EURL);
}

/* The options' password takes the place of the URL's; the second URL is why nothing comes of it. */
CASE(a_password_that_gives_way_is_wiped) {
    const evlock_loop loop = evlock_libevent(NULL);
    evlock_client_options options = {.size = sizeof(evlock_client_options)};
    evlock_client *client;
    options.password = "other";
    counted_begin("secret");
    assert_int_equal(evlock_client_new(&client, &loop, "quorum:redis://me:secret@h redis://", &options), EVLOCK_EURL);
    assert_int_equal(counted_live(), 0);
    assert_false(counted_leaked_secret());
}

CASE(memory_may_end_anywhere) {
    static const char *const texts[] = {"redis://me:secret@h:1/2", "unix:///a?db=3"};
    for (size_t i = 0; i < 2; i++) {
        struct url url;
        int status = EVLOCK_ENOMEM;
        long good_allocations = 0;
        for (; status != EVLOCK_OK; good_allocations++) {
            counted_begin("secret");
            counted_fail_after(good_allocations);
            status = evl_url_parse(&url, texts[i], strlen(texts[i]), &words).status;
            if (status == EVLOCK_OK)
                evl_url_free(&url);
            else
                assert_int_equal(status, EVLOCK_ENOMEM);
            assert_int_equal(counted_live(), 0);
            assert_false(counted_leaked_secret());
        }
        assert_true(good_allocations > 2);
        counted_end();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(good_urls_are_taken, counted_teardown),
        cmocka_unit_test_teardown(bad_urls_are_refused_in_words, counted_teardown),
        cmocka_unit_test_teardown(words_say_which_url_is_refused, counted_teardown),
        cmocka_unit_test_teardown(a_path_fits_or_is_refused, counted_teardown),
        cmocka_unit_test_teardown(an_address_is_written_without_who_logs_in_there, counted_teardown),
        cmocka_unit_test_teardown(an_announced_address_is_one_or_refused, counted_teardown),
        cmocka_unit_test_teardown(there_are_as_many_urls_as_nodes_and_no_more, counted_teardown),
        cmocka_unit_test_teardown(a_password_is_wiped, counted_teardown),
        cmocka_unit_test_teardown(a_password_that_gives_way_is_wiped, counted_teardown),
        cmocka_unit_test_teardown(memory_may_end_anywhere, counted_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
