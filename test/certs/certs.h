/*
 * Certificates for the tests, made when they are asked for: of any name, signer and time. Owns a temporary folder and
 * removes it at the end of the process that made the first of them; never asserts in a test's name. What cannot be made
 * ends the process and says why. Forked children may use what was made before; they make none.
 */
#ifndef EVLOCK_TEST_CERTS_H
#define EVLOCK_TEST_CERTS_H

#include <stdbool.h>
#include <stdint.h>

/* What a certificate is to be. All zero: one for a server on this machine, signed by the tests' own authority. */
struct cert_wish {
    const char *names;   /* "DNS:…", "IP:…", with commas; default localhost, 127.0.0.1 and ::1; "" for none */
    const char *subject; /* its common name; default the label that it is made by */
    const char *signer;  /* the label of an authority that was made before; default the tests' own */
    bool authority;      /* one that may sign others, and is signed by itself unless a signer is named */
    bool client;         /* for clients alone; default: for servers alone */
    int64_t from_s;      /* valid from so many seconds from now on; default one day ago … */
    int64_t to_s;        /* … to so many; default ten years from now */
    const char *secret;  /* of the key, which is written encrypted by it; default none */
};

/* Makes a certificate and its key, on P-256, and writes both; again under the same label, in place of the old ones. New
 * files are moved over old ones, so that nobody reads the half of one. */
void cert_make(const char *label, const struct cert_wish *wish);

/* The files of what was made under this label. Before anything was, these three are: "authority", "server" for this
 * machine, and "client". The strings stay. */
const char *cert_file(const char *label);
const char *cert_key_file(const char *label);
/* The certificate followed by those of its signers, the last of them left out. */
const char *cert_chain_file(const char *label);

#endif
