/*
 * The unit tests of texts of certificates and keys: which are taken, and in which words the others are refused. The
 * texts are put together of what the tests' own authority has signed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "certs.h"
#include "tls_pem.h"

#define SPOILT "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"

static char texts[4][16384];
static SSL_CTX *context;

/* The text of a file. */
static const char *of_file(const char *path) {
    static unsigned next;
    char *text = texts[next++ % 4];
    FILE *in = fopen(path, "rb");

    assert_non_null(in);
    text[fread(text, 1, sizeof(texts[0]) - 1, in)] = '\0';
    fclose(in);
    return text;
}

/* Of a certificate and of a key that were made under this label. */
static const char *cert(const char *label) {
    return of_file(cert_file(label));
}

static const char *key(const char *label) {
    return of_file(cert_key_file(label));
}

/* What comes of two texts, one behind the other. */
static struct trouble take(enum tls_pem kind, const char *first, const char *second) {
    char text[40000];
    struct secret secret = {text, 0, sizeof(text)};

    ERR_clear_error();
    secret.len = (size_t)snprintf(text, sizeof(text), "%s%s", first, second);
    return evl_tls_pem_take(context, kind, &secret);
}

static void is_taken(enum tls_pem kind, const char *first, const char *second) {
    assert_int_equal(take(kind, first, second).status, EVLOCK_OK);
    assert_int_equal(ERR_peek_error(), 0);
}

static void is_refused(enum tls_pem kind, const char *first, const char *second, const char *words) {
    struct trouble trouble = take(kind, first, second);

    print_message("# %s\n", trouble.words);
    assert_int_equal(trouble.status, EVLOCK_ETLS);
    assert_non_null(strstr(trouble.words, words));
}

static int trusted(void) {
    return sk_X509_OBJECT_num(X509_STORE_get0_objects(SSL_CTX_get_cert_store(context)));
}

static int shown(void) {
    STACK_OF(X509) *chain = NULL;

    SSL_CTX_get0_chain_certs(context, &chain);
    return (SSL_CTX_get0_certificate(context) != NULL) + (chain ? sk_X509_num(chain) : 0);
}

CASE(all_authorities_of_a_text_are_trusted) {
    is_taken(TLS_PEM_CA, cert("authority"), "");
    assert_int_equal(trusted(), 1);
    is_taken(TLS_PEM_CA, cert("authority"), cert("other_authority"));
    assert_int_equal(trusted(), 2);
    is_taken(TLS_PEM_CA, cert("authority"), "and words behind it, as bundles have them\n");
    is_taken(TLS_PEM_CA, "words before it\n", cert("authority"));
    assert_int_equal(shown(), 0);
}

CASE(all_certificates_of_a_chain_are_shown) {
    is_taken(TLS_PEM_CERT, cert("client"), "");
    assert_int_equal(shown(), 1);
    is_taken(TLS_PEM_CERT, cert("chained"), cert("intermediate"));
    assert_int_equal(shown(), 2);
    assert_int_equal(trusted(), 0);
}

CASE(a_key_is_that_of_its_certificate) {
    is_taken(TLS_PEM_CERT, cert("client"), "");
    is_taken(TLS_PEM_KEY, key("client"), "");
    is_taken(TLS_PEM_KEY, cert("client"), key("client")); /* both in one file */
    is_refused(TLS_PEM_KEY, key("server"), "", "key values mismatch");
}

CASE(a_text_without_what_it_is_to_hold_says_so) {
    for (enum tls_pem kind = TLS_PEM_CA; kind <= TLS_PEM_CERT; kind++) {
        is_refused(kind, "", "", "no certificate is in it");
        is_refused(kind, "garbage\n", "", "no certificate is in it");
        is_refused(kind, key("client"), "", "no certificate is in it");
    }
    is_taken(TLS_PEM_CERT, cert("client"), "");
    is_refused(TLS_PEM_KEY, "", "", "");
    is_refused(TLS_PEM_KEY, cert("client"), "", "");
}

/* A text that is cut off, or spoilt behind its first certificate, is not taken for the part that is good. */
CASE(a_text_is_taken_whole_or_refused) {
    char half[400];

    snprintf(half, sizeof(half), "%s", cert("authority"));
    for (enum tls_pem kind = TLS_PEM_CA; kind <= TLS_PEM_CERT; kind++) {
        is_refused(kind, half, "", "bad end line");
        is_refused(kind, cert("client"), half, "bad end line");
        is_refused(kind, SPOILT, "", "");
        is_refused(kind, cert("client"), SPOILT, "");
    }
}

CASE(nobody_is_asked_for_a_passphrase) {
    is_taken(TLS_PEM_CERT, cert("locked"), "");
    is_refused(TLS_PEM_KEY, key("locked"), "", "it is encrypted, and no passphrase is asked for");
}

static int make_certificates(void **state) {
    (void)state;
    cert_make("other_authority", &(struct cert_wish){.authority = true});
    cert_make("intermediate", &(struct cert_wish){.authority = true, .signer = "authority"});
    cert_make("chained", &(struct cert_wish){.signer = "intermediate", .client = true});
    cert_make("locked", &(struct cert_wish){.client = true, .secret = "secret"});
    return 0;
}

static int setup(void **state) {
    (void)state;
    context = SSL_CTX_new(TLS_client_method());
    return context ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    SSL_CTX_free(context);
    ERR_clear_error();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_authorities_of_a_text_are_trusted, setup, teardown),
        cmocka_unit_test_setup_teardown(all_certificates_of_a_chain_are_shown, setup, teardown),
        cmocka_unit_test_setup_teardown(a_key_is_that_of_its_certificate, setup, teardown),
        cmocka_unit_test_setup_teardown(a_text_without_what_it_is_to_hold_says_so, setup, teardown),
        cmocka_unit_test_setup_teardown(a_text_is_taken_whole_or_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(nobody_is_asked_for_a_passphrase, setup, teardown),
    };
    return cmocka_run_group_tests(tests, make_certificates, NULL);
}
