/*
 * URLs, as arbitrary text: what is taken means the same when it is written down again, and what is refused leaves
 * nothing behind, and no part of itself in an error text.
 */
#include "input.h"

#include <evlock/evlock.h>

#include "../unit/counted.h"
#include "url.h"

/* Appends with every byte that could mean something else as %XX. */
static char *escape(char *to, const char *text) {
    for (; *text; text++)
        to += sprintf(to, strchr("abcXYZ019", *text) ? "%c" : "%%%02x", (unsigned char)*text);
    return to;
}

static void write_down(char *to, const struct url *url) {
    if (url->path) {
        to += sprintf(to, "unix://");
        for (const char *at = url->path; *at; at++)
            to += sprintf(to, *at == '/' ? "/" : "%%%02x", (unsigned char)*at);
        sprintf(to, "?db=%d", url->db);
        return;
    }
    to += sprintf(to, "redis://");
    if (url->password) {
        if (url->user)
            to = escape(to, url->user);
        to = escape(to + sprintf(to, ":"), url->password);
        to += sprintf(to, "@");
    }
    to += sprintf(to, "%s", url->literal && strchr(url->host, ':') ? "[" : "");
    to = escape(to, url->host);
    sprintf(to, "%s:%d/%d", url->literal && strchr(url->host, ':') ? "]" : "", url->port, url->db);
}

static void check_same_text(const char *one, const char *other) {
    check(!one == !other);
    check(!one || strcmp(one, other) == 0);
}

static void check_same(const struct url *one, const struct url *other) {
    check_same_text(one->host, other->host);
    check_same_text(one->path, other->path);
    check_same_text(one->user, other->user);
    check_same_text(one->password, other->password);
    check(one->port == other->port && one->db == other->db && one->literal == other->literal);
}

static void check_whole(const struct url *url) {
    check(!url->host != !url->path);
    check(url->db >= 0);
    check(url->path ? (url->path[0] == '/' && !url->password) : (url->port > 0 && url->port < 65536 && url->host[0]));
    check(!url->user || url->password);
}

static void check_again(struct url *url, size_t size) {
    char *text = malloc(3 * size + 64);
    struct words words;
    struct url again;

    check(text);
    write_down(text, url);
    check(evl_url_parse(&again, text, strlen(text), &words).status == EVLOCK_OK);
    check_same(url, &again);
    evl_url_free(&again);
    evl_url_forget_login(url);
    check(!url->user && !url->password);
    check(evl_url_copy(&again, url) == EVLOCK_OK);
    check_same(url, &again);
    evl_url_free(&again);
    free(text);
}

static void check_trouble(struct trouble trouble) {
    check(trouble.status == EVLOCK_EURL || trouble.status == EVLOCK_ESCHEME || trouble.status == EVLOCK_EPATH);
    check(trouble.words[0] && !strstr(trouble.words, "s3cr3t"));
}

static void parse(const char *text, size_t len) {
    struct words words;
    struct url url;
    struct trouble trouble = evl_url_parse(&url, text, len, &words);

    if (trouble.status != EVLOCK_OK) {
        check_trouble(trouble);
        return;
    }
    check_whole(&url);
    check_again(&url, len);
    evl_url_free(&url);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    struct url_list list;
    struct trouble trouble;

    check(text);
    memcpy(text, data, size);
    text[size] = '\0';
    counted_begin(NULL);
    trouble = evl_url_list(&list, text);
    if (trouble.status != EVLOCK_OK)
        check_trouble(trouble);
    else
        check(list.count >= 1 && list.count <= EVLOCK_NODES_MAX);
    for (unsigned i = 0; trouble.status == EVLOCK_OK && i < list.count; i++) {
        check(list.urls[i].at >= text && list.urls[i].at + list.urls[i].len <= text + strlen(text));
        parse(list.urls[i].at, list.urls[i].len);
    }
    check(counted_live() == 0);
    free(text);
    return 0;
}
