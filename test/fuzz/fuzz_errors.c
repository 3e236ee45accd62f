/*
 * What servers refuse in, as arbitrary text: whatever it says, it is read as an error of a server, with a meaning, and
 * as none that only the library has; and what a server quotes has no say in it.
 */
#include "input.h"

#include <stdbool.h>

#include <evlock/evlock.h>
#include <hiredis/hiredis.h>

#include "reply_read.h"

static struct reply read_error(char *text, size_t len) {
    redisReply said = {.type = REDIS_REPLY_ERROR, .str = text, .len = len};
    const char *words[REPLY_WORDS_MAX];
    struct reply reply;

    evl_reply_read(&said, words, &reply);
    return reply;
}

static void check_meaning(enum reply_error error) {
    struct reply_meaning meaning = evl_reply_meaning(error);

    check(meaning.status < 0 && strcmp(evlock_strerror(meaning.status), evlock_strerror(12345)) != 0);
    check(meaning.verdict == LEASE_AGAIN || meaning.verdict == LEASE_REFUSED || meaning.verdict == LEASE_FORBIDDEN);
    check((meaning.verdict == LEASE_AGAIN) == (error == ERROR_NOSCRIPT || error == ERROR_NOCLOCK));
    check(!evl_reply_passes(error) || meaning.verdict == LEASE_REFUSED);
    check(!evl_reply_is_lacking(meaning) || meaning.verdict == LEASE_FORBIDDEN);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char quotes[] = ", with args beginning with: 'WRONGPASS' 'ACL failure in script' 'non local key'";
    char *text = malloc(size + sizeof(quotes));
    struct reply plain, quoting;

    check(text);
    memcpy(text, data, size);
    text[size] = '\0';
    plain = read_error(text, strlen(text));
    check(plain.type == REPLY_ERROR && plain.text == text && plain.len == strlen(text));
    check(plain.error > ERROR_NONE && plain.error <= ERROR_STRANGE && !evl_reply_sends_on(&plain));
    check(plain.error != ERROR_STRANGE || strncmp(text, "ERR", 3) != 0);
    check_meaning(plain.error);
    memcpy(text + strlen(text), quotes, sizeof(quotes));
    quoting = read_error(text, strlen(text));
    check(quoting.error == plain.error && quoting.len == plain.len);
    free(text);
    return 0;
}
