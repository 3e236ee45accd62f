/* The unit tests of OpenSSL's errors: that the thread's queue is left as it was, and what each error means to a client.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include "counted.h"
#include "tls_errors.h"

/* --- The queue ---------------------------------------------------------------------------------------------------- */

static void raise_error(int reason, const char *file, int line, const char *data) {
    ERR_new();
    ERR_set_debug(file, line, "function");
    ERR_set_error(ERR_LIB_USER, reason, data ? "%s" : NULL, data);
}

static void next_error_is(int reason, const char *file, int line, const char *data) {
    const char *found_file, *function, *found_data;
    int found_line, flags;
    unsigned long code = ERR_get_error_all(&found_file, &found_line, &function, &found_data, &flags);

    assert_int_equal(ERR_GET_LIB(code), ERR_LIB_USER);
    assert_int_equal(ERR_GET_REASON(code), reason);
    assert_string_equal(found_file, file);
    assert_int_equal(found_line, line);
    assert_string_equal(function, "function");
    assert_int_equal((flags & ERR_TXT_STRING) != 0, data != NULL);
    assert_string_equal(found_data, data ? data : "");
}

CASE(errors_come_back_whole_and_in_order) {
    struct tls_errors errors;

    counted_begin(NULL);
    raise_error(1, "one.c", 11, "with %s data");
    raise_error(2, "two.c", 22, NULL);
    raise_error(3, "three.c", 33, "");
    evl_tls_errors_set_aside(&errors);
    assert_int_equal(ERR_peek_error(), 0);
    evl_tls_errors_put_back(&errors);
    next_error_is(1, "one.c", 11, "with %s data");
    next_error_is(2, "two.c", 22, NULL);
    next_error_is(3, "three.c", 33, "");
    assert_int_equal(ERR_peek_error(), 0);
    assert_int_equal(counted_live(), 0);
}

CASE(errors_from_between_are_gone) {
    for (int before = 0; before < 2; before++) {
        struct tls_errors errors;
        if (before)
            raise_error(1, "one.c", 11, NULL);
        evl_tls_errors_set_aside(&errors);
        raise_error(7, "between.c", 77, NULL);
        evl_tls_errors_put_back(&errors);
        if (before)
            next_error_is(1, "one.c", 11, NULL);
        assert_int_equal(ERR_peek_error(), 0);
    }
}

/* The queue holds the last sixteen, or fifteen. */
CASE(a_full_queue_comes_back) {
    struct tls_errors errors;
    size_t count = 0;

    for (int i = 0; i < 40; i++)
        raise_error(i + 1, "full.c", i, NULL);
    evl_tls_errors_set_aside(&errors);
    assert_int_equal(ERR_peek_error(), 0);
    count = errors.count;
    assert_int_in_range(count, 15, 16);
    evl_tls_errors_put_back(&errors);
    for (size_t i = 40 - count; i < 40; i++)
        next_error_is((int)i + 1, "full.c", (int)i, NULL);
    assert_int_equal(ERR_peek_error(), 0);
}

/* Where an error arose is lost then, but not what it is. */
CASE(without_memory_the_codes_come_back) {
    struct tls_errors errors;

    raise_error(1, "one.c", 11, "data");
    raise_error(2, "two.c", 22, NULL);
    counted_begin(NULL);
    counted_fail_after(0);
    evl_tls_errors_set_aside(&errors);
    evl_tls_errors_put_back(&errors);
    assert_int_equal(ERR_GET_REASON(ERR_get_error()), 1);
    assert_int_equal(ERR_GET_REASON(ERR_get_error()), 2);
    assert_int_equal(ERR_get_error(), 0);
}

/* --- What they mean ----------------------------------------------------------------------------------------------- */

#define OF_SSL(reason) ERR_PACK(ERR_LIB_SSL, 0, reason)
#define ALERT(alert) OF_SSL(SSL_AD_REASON_OFFSET + (alert))

CASE(a_failure_means) {
    static const struct {
        struct tls_failure failure;
        int status;
        const char *words; /* how they begin */
    } rows[] = {
        /* The client does not trust the server. */
        {{OF_SSL(SSL_R_CERTIFICATE_VERIFY_FAILED), X509_V_ERR_HOSTNAME_MISMATCH, false},
         EVLOCK_ECERT,
         "the server's certificate: hostname mismatch"},
        {{OF_SSL(SSL_R_CERTIFICATE_VERIFY_FAILED), X509_V_ERR_CERT_HAS_EXPIRED, true},
         EVLOCK_ECERT,
         "the server's certificate: certificate has expired"},
        {{ERR_PACK(ERR_LIB_X509, 0, SSL_R_CERTIFICATE_VERIFY_FAILED), X509_V_OK, false}, EVLOCK_EPROTOCOL, "TLS: "},
        /* The server does not trust the client. */
        {{ALERT(SSL_AD_BAD_CERTIFICATE), X509_V_OK, true},
         EVLOCK_ECERT,
         "the server refuses this client's certificate: "},
        {{ALERT(SSL_AD_UNSUPPORTED_CERTIFICATE), X509_V_OK, true}, EVLOCK_ECERT, "the server refuses"},
        {{ALERT(SSL_AD_CERTIFICATE_REVOKED), X509_V_OK, true}, EVLOCK_ECERT, "the server refuses"},
        {{ALERT(SSL_AD_CERTIFICATE_EXPIRED), X509_V_OK, true}, EVLOCK_ECERT, "the server refuses"},
        {{ALERT(SSL_AD_CERTIFICATE_UNKNOWN), X509_V_OK, true}, EVLOCK_ECERT, "the server refuses"},
        {{ALERT(SSL_AD_UNKNOWN_CA), X509_V_OK, true}, EVLOCK_ECERT, "the server refuses"},
        {{ALERT(SSL_AD_ACCESS_DENIED), X509_V_OK, true}, EVLOCK_ECERT, "the server refuses"},
        {{ALERT(SSL_AD_CERTIFICATE_REQUIRED), X509_V_OK, false}, EVLOCK_ECERT, "the server refuses"},
        {{ALERT(SSL_AD_HANDSHAKE_FAILURE), X509_V_OK, true}, EVLOCK_ECERT, "the server refuses"},
        /* It is about something else. */
        {{ALERT(SSL_AD_HANDSHAKE_FAILURE), X509_V_OK, false}, EVLOCK_EPROTOCOL, "TLS: "},
        {{ALERT(SSL_AD_PROTOCOL_VERSION), X509_V_OK, true}, EVLOCK_EPROTOCOL, "TLS: "},
        {{ALERT(SSL_AD_INTERNAL_ERROR), X509_V_OK, true}, EVLOCK_EPROTOCOL, "TLS: "},
        {{ALERT(0), X509_V_OK, true}, EVLOCK_EPROTOCOL, "TLS: "},
        {{ALERT(256 + SSL_AD_UNKNOWN_CA), X509_V_OK, true}, EVLOCK_EPROTOCOL, "TLS: "},
        {{OF_SSL(SSL_AD_UNKNOWN_CA), X509_V_OK, true}, EVLOCK_EPROTOCOL, "TLS: "}, /* no alert */
        {{ERR_PACK(ERR_LIB_EVP, 0, SSL_AD_REASON_OFFSET + SSL_AD_UNKNOWN_CA), X509_V_OK, true},
         EVLOCK_EPROTOCOL,
         "TLS: "},
        {{OF_SSL(SSL_R_WRONG_VERSION_NUMBER), X509_V_OK, false}, EVLOCK_EPROTOCOL, "TLS: wrong version number"},
        {{OF_SSL(SSL_R_UNEXPECTED_MESSAGE), X509_V_ERR_HOSTNAME_MISMATCH, false},
         EVLOCK_EPROTOCOL,
         "TLS: unexpected message"},
        {{0, X509_V_OK, false}, EVLOCK_EPROTOCOL, "TLS: OpenSSL does not say why"},
        /* There is no memory: neither side is to be blamed for that, and a certificate is not distrusted. */
        {{OF_SSL(ERR_R_MALLOC_FAILURE), X509_V_OK, false}, EVLOCK_ENOMEM, "no memory"},
        {{ERR_PACK(ERR_LIB_ASN1, 0, ERR_R_MALLOC_FAILURE), X509_V_OK, true}, EVLOCK_ENOMEM, "no memory"},
        {{OF_SSL(SSL_R_CERTIFICATE_VERIFY_FAILED), X509_V_ERR_OUT_OF_MEM, false}, EVLOCK_ENOMEM, "no memory"},
        {{OF_SSL(SSL_R_CERTIFICATE_VERIFY_FAILED), X509_V_ERR_UNSPECIFIED, false}, EVLOCK_ENOMEM, "no memory"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct words words = {""};
        struct trouble trouble = evl_tls_errors_explain(&rows[i].failure, &words);
        print_message("# row %zu: %s\n", i, trouble.words);
        assert_int_equal(trouble.status, rows[i].status);
        assert_int_equal(strncmp(trouble.words, rows[i].words, strlen(rows[i].words)), 0);
    }
}

CASE(an_error_has_a_reason) {
    assert_string_equal(evl_tls_errors_reason(OF_SSL(SSL_R_WRONG_VERSION_NUMBER)), "wrong version number");
    assert_string_equal(evl_tls_errors_reason(ERR_SYSTEM_FLAG | ENOENT), strerror(ENOENT));
    assert_string_equal(evl_tls_errors_reason(0), "OpenSSL does not say why");
    assert_string_equal(evl_tls_errors_reason(ERR_PACK(ERR_LIB_USER, 0, 77)), "OpenSSL does not say why");
}

/* Without which OpenSSL knows no words yet for the errors of TLS. */
static int load_words(void **state) {
    (void)state;
    return OPENSSL_init_ssl(OPENSSL_INIT_LOAD_SSL_STRINGS, NULL) ? 0 : -1;
}

static int teardown(void **state) {
    ERR_clear_error();
    return counted_teardown(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(errors_come_back_whole_and_in_order, teardown),
        cmocka_unit_test_teardown(errors_from_between_are_gone, teardown),
        cmocka_unit_test_teardown(a_full_queue_comes_back, teardown),
        cmocka_unit_test_teardown(without_memory_the_codes_come_back, teardown),
        cmocka_unit_test(a_failure_means),
        cmocka_unit_test(an_error_has_a_reason),
    };
    return cmocka_run_group_tests(tests, load_words, NULL);
}
