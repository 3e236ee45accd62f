/* The unit tests of TLS's files, as far as nothing is opened: which is another than before, and which is not read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "counted.h"
#include "tls_files.h"

static struct stat a_file(void) {
    struct stat is;

    memset(&is, 0, sizeof(is));
    is.st_dev = 1;
    is.st_ino = 2;
    is.st_mode = S_IFREG | 0600;
    is.st_size = 3;
    is.st_mtim = (struct timespec){4, 5};
    return is;
}

/* Of the same size within one second, or under the same times: each of these alone shows another file. */
CASE(another_file_is_seen_by_any_of_these) {
    enum { FIELDS = 5 };

    for (int field = 0; field < FIELDS; field++) {
        struct stat one = a_file(), other = a_file();
        other.st_dev += field == 0;
        other.st_ino += field == 1;
        other.st_size += field == 2;
        other.st_mtim.tv_sec += field == 3;
        other.st_mtim.tv_nsec += field == 4;
        print_message("# field %d\n", field);
        assert_false(evl_tls_files_are_same(&one, &other));
        assert_false(evl_tls_files_are_same(&other, &one));
    }
}

/* To read a file, or to change who may, makes it no other one. */
CASE(a_file_stays_the_same_whoever_reads_it) {
    struct stat one = a_file(), other = a_file(), none;

    assert_true(evl_tls_files_are_same(&one, &other));
    other.st_atim = (struct timespec){6, 7};
    other.st_nlink++;
    other.st_mode = S_IFREG | 0640;
    assert_true(evl_tls_files_are_same(&one, &other));
    memset(&none, 0, sizeof(none));
    assert_false(evl_tls_files_are_same(&one, &none)); /* it is gone */
    assert_true(evl_tls_files_are_same(&none, &none));
}

CASE(what_is_no_file_is_not_read) {
    static const mode_t kinds[] = {S_IFDIR, S_IFCHR, S_IFBLK, S_IFIFO, S_IFSOCK, S_IFLNK, 0};
    struct stat is = a_file();

    assert_null(evl_tls_files_objection(&is));
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        is.st_mode = kinds[i] | 0600;
        assert_string_equal(evl_tls_files_objection(&is), "it is no regular file");
    }
}

CASE(a_file_has_16_mib_at_most) {
    struct stat is = a_file();

    is.st_size = 0;
    assert_null(evl_tls_files_objection(&is));
    is.st_size = (off_t)16 << 20;
    assert_null(evl_tls_files_objection(&is));
    is.st_size++;
    assert_string_equal(evl_tls_files_objection(&is), "it is longer than 16 MiB");
}

/* As this one, which is longer than it says. */
CASE(a_file_that_grows_while_it_is_read_is_not_used) {
    const evlock_client_options options = {.tls_ca = "/proc/self/status"};
    struct tls_files files = {0};
    struct words words;
    SSL_CTX *context;

    assert_true(evl_tls_files_take(&files, &options));
    assert_int_equal(evl_tls_files_load(&files, &context, &words).status, EVLOCK_ETLS);
    assert_string_equal(words.text, "tls_ca: /proc/self/status: it grew while it was read");
    evl_tls_files_free(&files);
}

CASE(paths_are_copied_or_there_is_no_memory) {
    const evlock_client_options options = {.tls_ca = "ca", .tls_cert = "cert", .tls_key = "key"};
    const evlock_client_options ca_alone = {.tls_ca = "ca"};

    for (long good = 0; good <= TLS_PEM_KINDS; good++) {
        struct tls_files files = {0};
        counted_begin(NULL);
        counted_fail_after(good);
        assert_int_equal(evl_tls_files_take(&files, &options), good == TLS_PEM_KINDS);
        evl_tls_files_free(&files);
        assert_int_equal(counted_live(), 0);
    }
    struct tls_files files = {0};
    counted_begin(NULL);
    assert_true(evl_tls_files_take(&files, &ca_alone));
    assert_string_equal(files.of[TLS_PEM_CA].path, "ca");
    assert_null(files.of[TLS_PEM_CERT].path);
    assert_null(files.of[TLS_PEM_KEY].path);
    evl_tls_files_free(&files);
    assert_true(evl_tls_files_take(&files, &options));
    assert_string_equal(files.of[TLS_PEM_CERT].path, "cert");
    assert_string_equal(files.of[TLS_PEM_KEY].path, "key");
    evl_tls_files_free(&files);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_file_is_seen_by_any_of_these),
        cmocka_unit_test(a_file_stays_the_same_whoever_reads_it),
        cmocka_unit_test(what_is_no_file_is_not_read),
        cmocka_unit_test(a_file_has_16_mib_at_most),
        cmocka_unit_test(a_file_that_grows_while_it_is_read_is_not_used),
        cmocka_unit_test_teardown(paths_are_copied_or_there_is_no_memory, counted_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
