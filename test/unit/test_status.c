/*
 * Statuses in words, and the last error's text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "status.h"

static const int statuses[] = {
    EVLOCK_OK,       EVLOCK_EHELD,     EVLOCK_ETIMEDOUT,  EVLOCK_ECANCELLED, EVLOCK_ENOTHELD,     EVLOCK_ENOTOWNED,
    EVLOCK_ELOST,    EVLOCK_ENOTTL,    EVLOCK_EALREADY,   EVLOCK_EQUORUM,    EVLOCK_EINVAL,       EVLOCK_ENAME,
    EVLOCK_ETOKEN,   EVLOCK_ETTL,      EVLOCK_ERETRY,     EVLOCK_ERENEWAL,   EVLOCK_EURL,         EVLOCK_ESCHEME,
    EVLOCK_EPATH,    EVLOCK_ECLOSED,   EVLOCK_EFORKED,    EVLOCK_ENOMEM,     EVLOCK_ESYSTEM,      EVLOCK_EUNREACHABLE,
    EVLOCK_EAUTH,    EVLOCK_EPERM,     EVLOCK_EWRONGTYPE, EVLOCK_EREFUSED,   EVLOCK_EUNSUPPORTED, EVLOCK_EPROTOCOL,
    EVLOCK_ESAME,    EVLOCK_EFENCE,    EVLOCK_EREPLICAS,  EVLOCK_EEXCLUDED,  EVLOCK_EQUEUE,       EVLOCK_EHOLDER,
    EVLOCK_EEXPIRED, EVLOCK_EDATALOSS, EVLOCK_EMAXHOLD,   EVLOCK_ETHREAD,    EVLOCK_EVERSION,     EVLOCK_ETLS,
    EVLOCK_EFILE,    EVLOCK_ECERT,     EVLOCK_EMASTER,
};
enum { STATUSES = sizeof statuses / sizeof *statuses };

CASE(every_status_has_words_of_its_own) {
    for (int i = 0; i < STATUSES; i++) {
        assert_string_not_equal(evlock_strerror(statuses[i]), evlock_strerror(1));
        for (int k = 0; k < i; k++)
            assert_string_not_equal(evlock_strerror(statuses[i]), evlock_strerror(statuses[k]));
    }
}

CASE(no_status_is_without_words) {
    int with_words = 0;
    for (int status = -100; status <= 100; status++)
        with_words += strcmp(evlock_strerror(status), evlock_strerror(INT32_MIN)) != 0;
    assert_int_equal(with_words, STATUSES);
    assert_true(strlen(evlock_strerror(INT32_MIN)) > 0);
}

CASE(a_status_is_called_by_its_name) {
    assert_string_equal(evlock_status_name(EVLOCK_OK), "EVLOCK_OK");
    assert_string_equal(evlock_status_name(EVLOCK_EHELD), "EVLOCK_EHELD");
    assert_string_equal(evlock_status_name(EVLOCK_EMAXHOLD), "EVLOCK_EMAXHOLD");
    assert_string_equal(evlock_status_name(EVLOCK_EPROTOCOL), "EVLOCK_EPROTOCOL");
    for (int status = -100; status <= 100; status++) {
        bool known = strcmp(evlock_strerror(status), evlock_strerror(INT32_MIN)) != 0;
        assert_int_equal(strcmp(evlock_status_name(status), "EVLOCK_?") != 0, known);
    }
    assert_string_equal(evlock_status_name(INT32_MIN), "EVLOCK_?");
}

CASE(the_version_is_the_header_s) {
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", EVLOCK_VERSION_MAJOR, EVLOCK_VERSION_MINOR, EVLOCK_VERSION_PATCH);
    assert_string_equal(evlock_version(), text);
    assert_string_equal(EVLOCK_VERSION_STRING, text);
}

CASE(failing_formats_and_returns) {
    assert_int_equal(evl_fail(EVLOCK_ETTL, "ttl %d of %s", 7, "x"), EVLOCK_ETTL);
    assert_string_equal(evlock_last_error(), "ttl 7 of x");
    evl_error_set("");
    assert_string_equal(evlock_last_error(), "");
}

CASE(words_may_go_into_others_in_the_same_room) {
    struct words words;
    struct trouble trouble = evl_trouble(&words, EVLOCK_EURL, "inner %d", 1);
    trouble = evl_trouble(&words, trouble.status, "outer: %s, again: %s", trouble.words, trouble.words);
    assert_string_equal(trouble.words, "outer: inner 1, again: inner 1");
    assert_int_equal(evl_report(trouble), EVLOCK_EURL);
    assert_string_equal(evlock_last_error(), trouble.words);
    assert_int_equal(evl_report(evl_no_trouble), EVLOCK_OK);
    assert_string_equal(evlock_last_error(), "");
}

CASE(unprintable_bytes_are_replaced) {
    evl_error_set("a\nb\x1b[1m\x7f\xc3\xa4 ~");
    assert_string_equal(evlock_last_error(), "a?b?[1m??? ~");
}

CASE(long_texts_are_cut) {
    char text[1000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    evl_error_set(text);
    assert_int_equal(strlen(evlock_last_error()), 255);
    evl_fail(EVLOCK_EURL, "%s", text);
    assert_int_equal(strlen(evlock_last_error()), 255);
}

static void *in_thread(void *arg) {
    *(int *)arg = strcmp(evlock_last_error(), "");
    evl_error_set("theirs");
    return NULL;
}

CASE(each_thread_has_its_own) {
    int different = -1;
    pthread_t thread;
    evl_error_set("ours");
    assert_int_equal(pthread_create(&thread, NULL, in_thread, &different), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(different, 0);
    assert_string_equal(evlock_last_error(), "ours");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_words_of_its_own),
        cmocka_unit_test(no_status_is_without_words),
        cmocka_unit_test(a_status_is_called_by_its_name),
        cmocka_unit_test(the_version_is_the_header_s),
        cmocka_unit_test(failing_formats_and_returns),
        cmocka_unit_test(words_may_go_into_others_in_the_same_room),
        cmocka_unit_test(unprintable_bytes_are_replaced),
        cmocka_unit_test(long_texts_are_cut),
        cmocka_unit_test(each_thread_has_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
