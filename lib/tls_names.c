/* Names of servers, as certificates have them; see tls_names.h. */
#include "tls_names.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <string.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

static bool tls_names_is_address(const char *name) {
    unsigned char address[sizeof(struct in6_addr)];

    return inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
}

/* In the letters that certificates have. No label is empty: to OpenSSL a dot in front stands for all hosts below. Nor
 * is the last one a number: that is the half of an address, which the system may take for a whole one ("127.1"). */
static bool tls_names_is_host(const char *name) {
    for (;;) {
        size_t len = strspn(name, LETTERS DIGITS "-_");
        if (len == 0)
            return false;
        if (name[len] != '.')
            return name[len] == '\0' && strspn(name, DIGITS) < len;
        name += len + 1;
    }
}

static enum tls_name_kind tls_names_kind(const char *name) {
    if (tls_names_is_address(name))
        return TLS_NAME_ADDRESS;
    return tls_names_is_host(name) ? TLS_NAME_HOST : TLS_NAME_NONE;
}

/* Certificates know neither the zone of an address ("fe80::1%eth0") nor the dot that ends an absolute name. */
static void tls_names_trim(char *name) {
    size_t len = strlen(name);

    if (strchr(name, ':'))
        name[strcspn(name, "%")] = '\0';
    else if (len > 1 && name[len - 1] == '.')
        name[len - 1] = '\0';
}

struct tls_name evl_tls_names_of(const char *host) {
    struct tls_name name = {TLS_NAME_NONE, ""};
    size_t len = strlen(host);

    if (len >= sizeof(name.text))
        return name;
    memcpy(name.text, host, len);
    tls_names_trim(name.text);
    name.kind = tls_names_kind(name.text);
    if (name.kind == TLS_NAME_NONE)
        name.text[0] = '\0';
    return name;
}
