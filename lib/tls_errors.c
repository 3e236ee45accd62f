/* OpenSSL's errors; see tls_errors.h. */
#include "tls_errors.h"

#include <string.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include "memory.h"

/* --- The queue ---------------------------------------------------------------------------------------------------- */

static char *tls_errors_copy(const char *text) {
    return text ? evl_dup(text, strlen(text)) : NULL;
}

void evl_tls_errors_set_aside(struct tls_errors *ret) {
    const char *file, *function, *data;
    int line, flags;

    ret->count = 0;
    if (!ERR_peek_error())
        return;
    while (ret->count < sizeof(ret->of) / sizeof(ret->of[0])) {
        struct tls_error *error = &ret->of[ret->count];
        error->code = ERR_get_error_all(&file, &line, &function, &data, &flags);
        if (!error->code)
            break;
        error->file = tls_errors_copy(file);
        error->line = line;
        error->function = tls_errors_copy(function);
        error->data = flags & ERR_TXT_STRING ? tls_errors_copy(data) : NULL;
        ret->count++;
    }
}

void evl_tls_errors_put_back(struct tls_errors *errors) {
    if (ERR_peek_error()) /* to look costs less than to clear */
        ERR_clear_error();
    for (size_t i = 0; i < errors->count; i++) {
        struct tls_error *error = &errors->of[i];
        ERR_new();
        ERR_set_debug(error->file, error->line, error->function);
        ERR_set_error(ERR_GET_LIB(error->code), ERR_GET_REASON(error->code), error->data ? "%s" : NULL, error->data);
        evl_free(error->file);
        evl_free(error->function);
        evl_free(error->data);
    }
}

/* --- What they mean ----------------------------------------------------------------------------------------------- */

const char *evl_tls_errors_reason(unsigned long code) {
    const char *reason = ERR_SYSTEM_ERROR(code) ? strerror(ERR_GET_REASON(code)) : ERR_reason_error_string(code);

    return reason ? reason : "OpenSSL does not say why";
}

/* The alert by which a server refused, or -1. */
static int tls_errors_alert(unsigned long code) {
    int reason = ERR_GET_REASON(code);

    return ERR_GET_LIB(code) == ERR_LIB_SSL && reason > SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256
               ? reason - SSL_AD_REASON_OFFSET
               : -1;
}

/* Whether the server refuses the certificate that it got, or that it got none. Before TLS 1.3 that is also said by an
 * alert that has many meanings. */
static bool tls_errors_is_refusal(const struct tls_failure *failure) {
    switch (tls_errors_alert(failure->code)) {
    case SSL_AD_HANDSHAKE_FAILURE:
        return failure->wants_certificate;
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_ACCESS_DENIED:
    case SSL_AD_CERTIFICATE_REQUIRED:
        return true;
    default:
        return false;
    }
}

struct trouble evl_tls_errors_explain(const struct tls_failure *failure, struct words *words) {
    unsigned long code = failure->code;
    long verified = failure->verified;

    if (ERR_GET_REASON(code) == ERR_R_MALLOC_FAILURE || verified == X509_V_ERR_OUT_OF_MEM ||
        verified == X509_V_ERR_UNSPECIFIED)
        return evl_tls_no_memory;
    if (ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED)
        return evl_trouble(words, EVLOCK_ECERT, "the server's certificate: %s",
                           X509_verify_cert_error_string(verified));
    if (tls_errors_is_refusal(failure))
        return evl_trouble(words, EVLOCK_ECERT, "the server refuses this client's certificate: %s",
                           evl_tls_errors_reason(code));
    return evl_trouble(words, EVLOCK_EPROTOCOL, "TLS: %s", evl_tls_errors_reason(code));
}
