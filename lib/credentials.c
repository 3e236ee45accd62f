/* Credentials; see credentials.h. */
#include "credentials.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bytes.h"
#include "check.h"
#include "memory.h"

/* The longest password that a file may have. */
#define LONGEST 65536

/* In bytes, of the command: at most so much stands before a word, and behind it. */
#define HEAD ((size_t)32)
#define WORDS 3

static const struct trouble no_memory = {EVLOCK_ENOMEM, "no memory for credentials"};

/* --- The command -------------------------------------------------------------------------------------------------- */

/* The secret has the room for it. */
static void credentials_add(struct secret *secret, const void *bytes, size_t len) {
    assert(len <= secret->room - secret->len);
    memcpy(secret->bytes + secret->len, bytes, len);
    secret->len += len;
}

static void credentials_add_word(struct secret *secret, struct bytes word) {
    char head[HEAD];
    int len = snprintf(head, sizeof(head), "$%zu\r\n", word.len);

    credentials_add(secret, head, (size_t)len);
    credentials_add(secret, word.data, word.len);
    credentials_add(secret, "\r\n", 2);
}

static struct trouble credentials_write(const char *user, struct bytes password, struct secret *ret) {
    size_t user_len = user ? strlen(user) : 0;

    if (!evl_secret_make(ret, user_len + password.len + (WORDS + 1) * HEAD))
        return no_memory;
    credentials_add(ret, user ? "*3\r\n" : "*2\r\n", 4);
    credentials_add_word(ret, (struct bytes){"AUTH", 4});
    if (user)
        credentials_add_word(ret, (struct bytes){user, user_len});
    credentials_add_word(ret, password);
    return evl_no_trouble;
}

struct trouble evl_credentials_write(const struct credentials *credentials, const char *user, const char *password,
                                     struct secret *ret) {
    return credentials_write(user ? user : credentials->user, (struct bytes){password, strlen(password)}, ret);
}

/* --- The file ----------------------------------------------------------------------------------------------------- */

/* A pipe that nobody writes to is no reason to wait. */
static bool credentials_read_file(const char *file, struct secret *text) {
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    int error;
    bool done;

    if (fd < 0)
        return false;
    done = evl_secret_read(text, fd);
    error = errno;
    (void)close(fd);
    errno = error;
    return done;
}

static struct trouble credentials_take_line(const struct credentials *credentials, const struct secret *text,
                                            struct secret *ret) {
    const char *end = memchr(text->bytes, '\n', text->len);
    size_t len = end ? (size_t)(end - text->bytes) : text->len;

    if (len == 0)
        return (struct trouble){EVLOCK_EFILE,
                                text->len ? "the password file's first line is empty" : "the password file is empty"};
    if (len > LONGEST)
        return (struct trouble){EVLOCK_EFILE, "the password file's first line is longer than 64 KiB"};
    if (memchr(text->bytes, '\0', len))
        return (struct trouble){EVLOCK_EFILE, "the password file's first line has a NUL in it"};
    return credentials_write(credentials->user, (struct bytes){text->bytes, len}, ret);
}

struct trouble evl_credentials_read(const struct credentials *credentials, struct secret *ret, struct words *words) {
    struct secret text;
    struct trouble trouble;

    if (!evl_secret_make(&text, LONGEST + 1))
        return no_memory;
    if (credentials_read_file(credentials->file, &text))
        trouble = credentials_take_line(credentials, &text, ret);
    else
        trouble = evl_trouble(words, EVLOCK_EFILE, "the password file cannot be read: %s", strerror(errno));
    evl_secret_wipe(&text);
    return trouble;
}

/* --- Their life --------------------------------------------------------------------------------------------------- */

struct trouble evl_credentials_begin(struct credentials *credentials, const char *user, const char *password,
                                     const char *file, bool asks) {
    credentials->file = file;
    credentials->asks = asks;
    credentials->user = user ? evl_dup(user, strlen(user)) : NULL;
    if (user && !credentials->user)
        return no_memory;
    return password ? evl_credentials_write(credentials, NULL, password, &credentials->kept) : evl_no_trouble;
}

void evl_credentials_give(struct credentials *credentials, struct secret *given) {
    struct secret *place = evl_credentials_renew(credentials) ? &credentials->given : &credentials->kept;

    evl_secret_wipe(place);
    *place = *given;
    *given = (struct secret){0};
}

bool evl_credentials_take_question(struct credentials *credentials) {
    bool wanted = credentials->wanted;

    credentials->wanted = false;
    return wanted;
}

void evl_credentials_wipe(struct credentials *credentials) {
    credentials->wanted = false;
    evl_secret_wipe(&credentials->kept);
    evl_secret_wipe(&credentials->given);
}

void evl_credentials_free(struct credentials *credentials) {
    evl_credentials_wipe(credentials);
    evl_free(credentials->user);
    credentials->user = NULL;
}
