/* The unit tests of names in certificates: what a server's certificate must be of, by the host of its URL. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tls_names.h"

static void is(const char *host, enum tls_name_kind kind, const char *text) {
    struct tls_name name = evl_tls_names_of(host);

    print_message("# \"%s\"\n", host);
    assert_int_equal(name.kind, kind);
    assert_string_equal(name.text, text);
}

CASE(a_host_is_a_name_or_an_address) {
    static const struct {
        const char *host;
        enum tls_name_kind kind;
    } rows[] = {
        {"localhost", TLS_NAME_HOST},
        {"a", TLS_NAME_HOST},
        {"Redis-1.Example.COM", TLS_NAME_HOST},
        {"_redis._tcp.example", TLS_NAME_HOST},
        {"1.2.3.example", TLS_NAME_HOST},
        {"10.0.0.1.example", TLS_NAME_HOST},
        {"xn--bcher-kva.example", TLS_NAME_HOST},
        {"1a", TLS_NAME_HOST},
        {"a.1b", TLS_NAME_HOST},
        {"0x7f", TLS_NAME_HOST},
        {"127.0.0.1", TLS_NAME_ADDRESS},
        {"::1", TLS_NAME_ADDRESS},
        {"2001:db8::7", TLS_NAME_ADDRESS},
        {"::ffff:10.0.0.7", TLS_NAME_ADDRESS},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        is(rows[i].host, rows[i].kind, rows[i].host);
}

CASE(the_dot_at_the_end_and_the_zone_are_left_out) {
    is("localhost.", TLS_NAME_HOST, "localhost");
    is("redis.example.com.", TLS_NAME_HOST, "redis.example.com");
    is("10.0.0.7.", TLS_NAME_ADDRESS, "10.0.0.7");
    is("fe80::1%eth0", TLS_NAME_ADDRESS, "fe80::1");
    is("fe80::1%", TLS_NAME_ADDRESS, "fe80::1");
}

CASE(no_certificate_is_of_what_is_neither) {
    static const char *const hosts[] = {
        "",
        ".",
        "..",
        ".test",
        "a..test",
        "a.test..",
        "*.test",
        "a*.test",
        "a b",
        "a/b",
        "a@b",
        "a:6379",
        ":",
        "1:2",
        "[::1]",
        "%x",
        "a%b",
        "a.test%eth0",
        "a.te\nst",
        "\xc3\xa4.test",
        "127.0.0.1%lo",
        "::1.",
        "fe80::1.%e",
        "%x:",
    };

    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
        is(hosts[i], TLS_NAME_NONE, "");
}

/* Which the system may take for a whole one, while the certificate would be asked for a name. */
CASE(half_an_address_is_no_name) {
    static const char *const hosts[] = {"1", "127.1", "10.0.1", "10.0.0.256", "10.0.0.0.7", "a.test.1", "127.1."};

    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
        is(hosts[i], TLS_NAME_NONE, "");
}

/* A dot at the end is one of the bytes. */
CASE(the_longest_name_has_255_bytes) {
    char host[TLS_NAME_SIZE + 1] = {0};

    memset(host, 'a', TLS_NAME_SIZE - 1);
    is(host, TLS_NAME_HOST, host);
    host[TLS_NAME_SIZE - 1] = 'a';
    is(host, TLS_NAME_NONE, "");
    host[TLS_NAME_SIZE - 1] = '.';
    is(host, TLS_NAME_NONE, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_is_a_name_or_an_address),
        cmocka_unit_test(the_dot_at_the_end_and_the_zone_are_left_out),
        cmocka_unit_test(no_certificate_is_of_what_is_neither),
        cmocka_unit_test(half_an_address_is_no_name),
        cmocka_unit_test(the_longest_name_has_255_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
